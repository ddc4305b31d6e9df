// Package approve holds questions until a person answers them.
//
// [Desk.Ask] puts a question and waits; a [Page], a terminal on the desk's [Serve] socket, or an MCP client's own
// elicitation answers it. No answer in time, one denial, or two different answers is Deny.
//
// # Limits
//
// The desk cannot tell a person from a program that runs as the same user and reads the same files: an agent host with an
// unsandboxed shell can answer its own questions. Elicitations are answered by the agent's host, so questions of high risk
// are never put there. The page is for a loopback address or for TLS in front of it.
package approve
