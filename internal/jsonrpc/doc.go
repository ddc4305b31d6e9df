// Package jsonrpc carries JSON-RPC 2.0 messages between two sides, exactly and within bounds. It knows no MCP method.
//
// [NewLines] speaks messages as lines over two streams; [NewPeer] adds, on any [Transport], requests with ids of its own and
// the matching of their answers.
//
// Ids keep their bytes: 1.5, 1e0, 9007199254740993 and "1" are four different ids. A line that is no message costs that
// line: it is dropped and counted, or reported as a [*BadMessage] that names the request it was about, and reading goes on.
//
// # Limits
//
// A batch is read as its messages, one after the other, and answered message by message. A Lines transport cannot interrupt
// a read of a stream that does not end: close the stream. What two ids mean is left to the caller: mapping a cancellation or
// a progress token to the other side is not done here.
package jsonrpc
