package gateway

// outside lists texts of a server that no schema names, and what becomes of them. The first column of docs/channels.md's last table.
var outside = []struct {
	where string
	by    readers
	does  string
}{
	{"`annotations.audience`, `annotations.priority` of any content", human | program, "check; an audience never hides a block from the frame, the screens or the log"},
	{"tasks extension: `tasks/get` result.result, error, inputRequests, statusMessage; `notifications/tasks`", modelHuman, "the rows of ExtensionTask: framed as the result of the tool that the task runs; requests for input by their own rows"},
	{"2025-11-25 `_meta[\"io.modelcontextprotocol/model-immediate-response\"]`", model, "frame"},
	{"MCP Apps: `ui://` resources, `text/html;profile=mcp-app`, `_meta.ui`", modelHuman, "withheld, a framed note says so; `_meta.ui` is dropped"},
	{"Skills (resources that hold instructions)", model, "framed as any resource: never instructions by themselves"},
	{"`x-mcp-header` in a tool's inputSchema", program, "cleaned and pinned with the schema; whatever is sent by it is an argument that the gate judged"},
	{"HTTP: bodies that are no JSON, `WWW-Authenticate`, redirects, `Set-Cookie`, SSE comments, event names, ids, retry", everyone, "never relayed: the transport reads what it needs and writes its own"},
	{"OAuth metadata: names, addresses, scopes", human, "checked, cleaned and cut; shown by `hearsay login` to the person who signs in. The error of a call that lacks a sign-in is in words of the gateway's own; scopes that a refusal names go to the log"},
	{"Standard error of a stdio server", modelHuman, "a capped, cleaned log; never to the model"},
	{"Lines on standard output that are no message", modelHuman, "dropped and counted"},
	{"Names of servers, tools and addresses as attributes of the gateway's own frames", model, "cleaned, defanged, then escaped"},
}
