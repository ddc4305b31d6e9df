package gateway

// contentObjects: what tool results, prompts, resources and sampling messages are made of.
var contentObjects = []object{
	{name: "TextContent", also: []string{"Annotated"}, need: []string{"text"}, fields: []field{
		{"type", check, program, "word", ""},
		{"text", frame, model, "text", "hidden characters go first, then the token and its look-alikes, also across two blocks"},
		{"annotations", into, program, "Annotations", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "ImageContent", also: []string{"AudioContent"}, need: []string{"data", "mimeType"}, fields: []field{
		{"type", check, program, "word", ""},
		{"data", check, model | program, "media", "must be base64 and start as its type does; what turns out to be text is framed as text; a framed note stands beside"},
		{"mimeType", check, model | program, "mime", ""},
		{"annotations", into, program, "Annotations", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "EmbeddedResource", need: []string{"resource"}, fields: []field{
		{"type", check, program, "word", ""},
		{"resource", into, model, "ResourceContents", ""},
		{"annotations", into, program, "Annotations", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "ResourceContents", also: []string{"TextResourceContents", "BlobResourceContents"}, need: []string{"uri"}, fields: []field{
		{"uri", check, everyone, "uri", "odd characters are percent-encoded; in an answer to resources/read the asked URI or one below it"},
		{"mimeType", check, model | program, "mime", "an MCP app (ui://, text/html;profile=mcp-app) is withheld: its text would reach the conversation past the gateway"},
		{"text", frame, model, "text", ""},
		{"blob", check, model | program, "blob", "what is text by its type or by its bytes is decoded, framed and encoded again"},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "ResourceLink", need: []string{"uri", "name"}, fields: []field{
		{"type", check, program, "word", ""},
		{"uri", check, everyone, "uri", ""},
		{"name", clean, everyone, "name", ""},
		{"title", frame, modelHuman, "beside", "moved into a framed text block beside the link"},
		{"description", frame, modelHuman, "beside", "moved into a framed text block beside the link"},
		{"mimeType", check, program, "mime", ""},
		{"size", check, program, "count", ""},
		{"icons", into, human, "[]Icon", ""},
		{"annotations", into, program, "Annotations", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "ToolUseContent", need: []string{"id", "name", "input"}, fields: []field{
		{"type", check, program, "word", ""},
		{"id", check, program, "opaque", "sampling only; a made-up history, so by default the block becomes framed text"},
		{"name", check, model | program, "toolname", ""},
		{"input", clean, model, "leaves", "every string and every name in it"},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "ToolResultContent", need: []string{"toolUseId"}, fields: []field{
		{"type", check, program, "word", ""},
		{"toolUseId", check, program, "opaque", "sampling only; by default the block becomes framed text"},
		{"content", into, model, "[]ContentBlock", ""},
		{"structuredContent", clean, model, "structured", "fold (default): its JSON goes into framed text; defang: every string and every name in it; pass"},
		{"isError", check, model | program, "bool", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "Annotations", fields: []field{
		{"audience", check, human | program, "roles", "never hides a block from the frame, the screens or the log"},
		{"priority", check, program, "fraction", ""},
		{"lastModified", check, model | program, "time", ""},
	}},
	{name: "Icon", also: []string{"Icons.icon"}, need: []string{"src"}, fields: []field{
		{"src", check, human, "icon", "data:image/png, jpeg or webp only: a host that fetches a remote icon is a beacon, and SVG is a program"},
		{"mimeType", check, program, "mime", ""},
		{"sizes", check, program, "sizes", ""},
		{"theme", check, program, "theme", ""},
	}},
	{name: "Icons", fields: []field{
		{"icons", into, human, "[]Icon", ""},
	}},
	{name: "Meta", also: []string{"MetaObject", "ResultMetaObject", "NotificationMetaObject", "SubscriptionsListenResultMetaObject"}, fields: []field{
		{"progressToken", check, program, "id", "mapped by the gateway, which issued it"},
		{"io.modelcontextprotocol/subscriptionId", check, program, "id", "mapped by the gateway, which issued it"},
		{"io.modelcontextprotocol/serverInfo", into, modelHuman, "Implementation", "what a server says of itself is no identity"},
		{"io.modelcontextprotocol/related-task", into, program, "RelatedTaskMetadata", ""},
		{"io.modelcontextprotocol/model-immediate-response", frame, model, "text", "text for the model, at a place hosts do not expect it"},
		{"traceparent", check, program, "word", ""},
		{"tracestate", check, program, "line", ""},
		{"baggage", check, program, "line", ""},
		{"*", drop, everyone, "", "unless the operator passes unknown members; _meta.ui (MCP Apps) goes too"},
	}},
	{name: "RelatedTaskMetadata", need: []string{"taskId"}, fields: []field{
		{"taskId", check, program, "opaque", ""},
	}},
	{name: "Implementation", need: []string{"name", "version"}, fields: []field{
		{"name", pin, modelHuman, "name", "self-reported: shown, never believed"},
		{"title", pin, modelHuman, "line", ""},
		{"version", pin, modelHuman, "name", ""},
		{"description", pin, modelHuman, "prose", ""},
		{"websiteUrl", check, human, "https", ""},
		{"icons", into, human, "[]Icon", ""},
	}},
}

// unions choose a content type by its type member and an elicitation by its mode.
var unions = map[string]union{
	"ContentBlock": {by: "type", of: map[string]string{
		"text": "TextContent", "image": "ImageContent", "audio": "AudioContent", "resource": "EmbeddedResource", "resource_link": "ResourceLink",
	}},
	"SamplingMessageContentBlock": {by: "type", of: map[string]string{
		"text": "TextContent", "image": "ImageContent", "audio": "AudioContent", "tool_use": "ToolUseContent", "tool_result": "ToolResultContent",
	}},
	"ElicitRequestParams": {by: "mode", none: "form", of: map[string]string{
		"form": "ElicitRequestFormParams", "url": "ElicitRequestURLParams",
	}},
}
