// Package gateway is one MCP session between a client and its servers, each message through the same stages in the same
// order.
//
// [NewGateway] takes the servers; [Gateway.Serve] serves one client on a transport, starting servers when they are needed and
// again when they ended. serve (stages.go) is the one function that every request of a client passes; the tables of
// fields*.go say what happens to each member of each message, and [Treater] does it.
//
// # Limits
//
// Frames tell a model whose words a text is; they do not stop an attacker who adapts. What a call may do is bounded by the
// gate ([Options.Policy]), and what a server may reach by how it is launched: [Exec] gives it an environment of its own and
// nothing more. A server that answers a call with the result of another cannot be told from one that does not. Between two
// calls to one server nothing is kept apart: whoever does not trust it with both should run it twice.
package gateway
