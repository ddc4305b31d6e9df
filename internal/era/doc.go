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
// Tasks are translated as far as both eras have them: a call becomes one where a server has to run it as one, or where an older client
// asks for one. A client that knows no tasks, or asks for none, has the outcome as the answer to its call.
//
// # Limits
//
// What one era lacks is refused with an error that names it: resources/subscribe, logging/setLevel, ping, tasks/list and tasks/result
// from a newer client, subscriptions/listen from an older one; tasks/list of a newer server. Neither may a server's question to the client be a
// task, which only the older era has, nor is an older client told of a newer server's tasks by itself: it has to ask. A client reaches only
// tasks that its own calls became, on the same connection. On stdio a server does not say which call it asks or logs for, unless it is
// for a task; the bridge takes the call that was sent last. A question asked outside any call waits for the next call that can carry
// it. Contents are not translated: what a newer server puts into a result, or a server of either era into the definition of a tool,
// reaches the client as it is. So the tools of a newer server do not say that they may be tasks: an older client asks for one because its
// user wants it, or it calls plainly.
package era
