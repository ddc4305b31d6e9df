package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// mcpList is an MCP server for scripts: it offers the tools in the file it is given, as they are written there.
func mcpList() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "mcp-list FILE")
		os.Exit(2)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"list","version":"1"},"instructions":"Ask first."}`
		case "tools/list":
			tools, err := os.ReadFile(os.Args[1])
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			var v any
			if err := json.Unmarshal(tools, &v); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			line, _ := json.Marshal(v)
			result = `{"tools":` + string(line) + `}`
		case "tools/call":
			result = `{"content":[{"type":"text","text":"called"}]}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	}
}
