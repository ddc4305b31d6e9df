// Package streamhttp carries JSON-RPC messages over MCP's streamable HTTP, of both eras, as [jsonrpc.Transport].
//
// [NewClient] speaks to a server: POST, JSON or event-stream answers, the listening stream and its resumption, sessions up
// to 2025-11-25, none from 2026-07-28 on, and servers of 2024-11-05 that only know HTTP+SSE. [NewHandler] serves clients of
// both eras on one path and hands each session a transport. The rules are those of the specification's pages "Transports"
// of each version, and SEP-2243 for the Mcp-* headers.
//
// # Limits
//
// Bodies are read whole before anything is passed on. Batches, which only 2025-03-26 had, are refused. Redirects are never
// followed. What an HTTP server says outside JSON-RPC (error pages, reasons, WWW-Authenticate) reaches no message: the caller
// gets a status code in our words.
// Headers that repeat arguments (Mcp-Param-*) follow the input schema that tools/list gave on the same connection: of a tool that
// was not listed there, a client sends none, and a handler checks only their form.
package streamhttp
