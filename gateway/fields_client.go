package gateway

// clientObjects: what a client writes. The client is the one the gateway works for: its words pass unchanged (unknown members
// too), after the gate has judged them. Only what the gateway itself answers or maps is read.
var clientObjects = []object{
	{name: "CallToolRequestParams", fields: []field{
		{"name", check, program, "a known tool", "mapped to the server's own name"},
		{"arguments", leave, program, "", "judged by the gate"},
		{"task", leave, program, "", ""},
		{"inputResponses", leave, program, "", "answers of the person"},
		{"requestState", check, program, "as the server gave it", "only with the request it was given for: unsealed"},
		{"_meta", leave, program, "", "progressToken mapped to the gateway's own"},
	}},
	{name: "GetPromptRequestParams", fields: []field{
		{"name", check, program, "a known prompt", "mapped to the server's own name"},
		{"arguments", leave, program, "", "judged by the gate"},
		{"inputResponses", leave, program, "", ""},
		{"requestState", check, program, "as the server gave it", "only with the request it was given for: unsealed"},
		{"_meta", leave, program, "", ""},
	}},
	{name: "ReadResourceRequestParams", also: []string{"SubscribeRequestParams", "UnsubscribeRequestParams", "ResourceRequestParams"}, fields: []field{
		{"uri", leave, program, "", "judged by the gate; decides which server is asked"},
		{"inputResponses", leave, program, "", ""},
		{"requestState", check, program, "as the server gave it", "only with the request it was given for: unsealed"},
		{"_meta", leave, program, "", ""},
	}},
	{name: "CompleteRequestParams", fields: []field{
		{"ref", leave, program, "", "its name is mapped to the server's own"},
		{"argument", leave, program, "", ""},
		{"context", leave, program, "", ""},
		{"_meta", leave, program, "", ""},
	}},
	{name: "CompleteRequestParams.argument", fields: []field{
		{"name", leave, program, "", ""},
		{"value", leave, program, "", ""},
	}},
	{name: "CompleteRequestParams.context", fields: []field{
		{"arguments", leave, program, "", ""},
	}},
	{name: "PromptReference", also: []string{"ResourceReference", "ResourceTemplateReference"}, fields: []field{
		{"type", leave, program, "", ""},
		{"name", leave, program, "", "mapped to the server's own name"},
		{"title", leave, program, "", ""},
		{"uri", leave, program, "", ""},
	}},
	{name: "InitializeRequestParams", fields: []field{
		{"protocolVersion", check, program, "a known version", "answered by the gateway; each server is asked in its own version"},
		{"capabilities", leave, program, "", "what the client lacks is not offered to a server"},
		{"clientInfo", leave, program, "", ""},
		{"_meta", leave, program, "", ""},
		{"*", leave, program, "", ""},
	}},
	{name: "ClientCapabilities", fields: []field{
		{"*", leave, program, "", ""},
		{"experimental", leave, program, "", ""},
		{"extensions", leave, program, "", ""},
		{"roots", leave, program, "", ""},
		{"sampling", leave, program, "", ""},
		{"elicitation", leave, program, "", ""},
		{"tasks", leave, program, "", ""},
	}},
	{name: "RequestMetaObject", fields: []field{
		{"progressToken", check, program, "id", "mapped to the gateway's own"},
		{"io.modelcontextprotocol/protocolVersion", check, program, "a known version", ""},
		{"io.modelcontextprotocol/clientCapabilities", leave, program, "", ""},
		{"io.modelcontextprotocol/clientInfo", leave, program, "", ""},
		{"io.modelcontextprotocol/logLevel", leave, program, "", ""},
		{"*", leave, program, "", ""},
	}},
	{name: "InputResponseRequestParams", fields: []field{
		{"inputResponses", leave, program, "", ""},
		{"requestState", check, program, "as the server gave it", "only with the request it was given for: unsealed"},
		{"_meta", leave, program, "", ""},
	}},
	{name: "InputResponses", fields: []field{
		{"*", leave, program, "", "answers of the person or of the client's model"},
	}},
	{name: "SubscriptionsListenRequestParams", fields: []field{
		{"notifications", leave, program, "", ""},
		{"_meta", leave, program, "", ""},
	}},
	{name: "SetLevelRequestParams", fields: []field{
		{"level", leave, program, "", ""},
		{"_meta", leave, program, "", ""},
	}},
	{name: "TaskAugmentedRequestParams", fields: []field{
		{"task", leave, program, "", ""},
		{"_meta", leave, program, "", ""},
	}},
	{name: "CreateMessageResult", fields: []field{
		{"role", leave, program, "", ""},
		{"content", leave, program, "", "what the client's model wrote leaves for the server: the gate's egress rules apply"},
		{"model", leave, program, "", ""},
		{"stopReason", leave, program, "", ""},
		{"_meta", leave, program, "", ""},
	}},
	{name: "ElicitResult", fields: []field{
		{"action", leave, program, "", ""},
		{"content", leave, program, "", "what the person typed for this server"},
		{"_meta", leave, program, "", ""},
	}},
	{name: "ListRootsResult", fields: []field{
		{"roots", leave, program, "", ""},
		{"_meta", leave, program, "", ""},
	}},
	{name: "Root", fields: []field{
		{"uri", leave, program, "", ""},
		{"name", leave, program, "", ""},
		{"_meta", leave, program, "", ""},
	}},
	{name: "JSONObject", fields: []field{
		{"*", leave, program, "", "the schema's name for any object; each place that uses it has a row"},
	}},
}
