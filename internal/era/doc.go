// Package era lets a client of one MCP era work with a server of the other: one that knows only 2026-07-28 with one that knows only
// initialize (2024-11-05 to 2025-11-25), and the other way round.
//
// [New] wraps the transport to a server. The client's first message tells its era, the server's answers tell the server's; a
// [Memory] keeps what was learnt for the next connection. Where both are of one era nothing is translated: messages pass as they
// are. Where they differ, whoever holds the transport sees a server of the client's era.
//
// A question of an older server in the middle of a call (sampling, elicitation, roots) becomes an answer that says
// "input_required": the call stays open at the server, and the client's retry goes on with it. A newer server's "input_required"
// becomes questions to the client, and the bridge retries.
//
// # Limits
//
// Tasks are not translated: neither side is told that the other has them. What one era lacks is refused with an error that names it:
// resources/subscribe, logging/setLevel and ping from a newer client, subscriptions/listen from an older one. On stdio a server does not
// say which call it asks or logs for; the bridge takes the call that was sent last. A question asked outside any call waits for
// the next call that can carry it. Contents are not translated: what a newer server puts into a result reaches the older client as it is.
package era
