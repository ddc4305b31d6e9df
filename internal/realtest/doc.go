// Package realtest holds the tests with real MCP clients and servers (build tag real), the programs they need, and the
// benchmark beside a direct connection. package.json names the exact versions.
package realtest
