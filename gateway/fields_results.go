package gateway

// resultObjects: what a server answers.
var resultObjects = []object{
	{name: "CallToolResult", also: []string{"GetTaskPayloadResult"}, need: []string{"content"}, fields: []field{
		{"content", into, model, "[]ContentBlock", "an unknown kind of block is withheld, a framed note says so"},
		{"structuredContent", clean, model, "structured", "fold (default): its JSON goes into the framed text once; defang: every string and every name in it; pass"},
		{"isError", check, model | program, "bool", ""},
		{"resultType", check, program, "resulttype", "an unknown one: the whole result is framed as text"},
		{"_meta", into, program, "Meta", ""},
		{"*", drop, modelHuman, "", ""},
	}},
	{name: "GetPromptResult", need: []string{"messages"}, fields: []field{
		{"description", frame, modelHuman, "text", ""},
		{"messages", into, model, "[]PromptMessage", ""},
		{"resultType", check, program, "resulttype", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "PromptMessage", need: []string{"role", "content"}, fields: []field{
		{"role", fixed, program, "user", "an assistant's role would put a server's words into the model's own mouth"},
		{"content", into, model, "ContentBlock", ""},
	}},
	{name: "ReadResourceResult", need: []string{"contents"}, fields: []field{
		{"contents", into, model, "[]ResourceContents", ""},
		{"resultType", check, program, "resulttype", ""},
		{"ttlMs", check, program, "cachettl", "at most an hour"},
		{"cacheScope", fixed, program, "private", "what one principal may read is not another's"},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "CompleteResult", need: []string{"completion"}, fields: []field{
		{"completion", into, human, "CompleteResult.completion", ""},
		{"resultType", check, program, "resulttype", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "CompleteResult.completion", need: []string{"values"}, fields: []field{
		{"values", clean, modelHuman, "values", "at most 100 of 256 bytes"},
		{"total", check, program, "count", ""},
		{"hasMore", check, program, "bool", ""},
	}},
	{name: "InputRequiredResult", fields: []field{
		{"resultType", check, program, "resulttype", ""},
		{"inputRequests", into, modelHuman, "InputRequests", ""},
		{"requestState", check, program, "state", "opaque, at most 64 KiB; the client gets it sealed together with the request it belongs to"},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "InputRequests", fields: []field{
		{"*", into, modelHuman, "InputRequest", "only elicitation/create, sampling/createMessage and roots/list; a name that is no plain word is dropped with its entry"},
	}},
	{name: "CreateTaskResult", need: []string{"task"}, fields: []field{
		{"task", into, modelHuman, "Task", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "Task", also: []string{"GetTaskResult", "CancelTaskResult", "TaskStatusNotificationParams"}, need: []string{"taskId", "status"}, fields: append([]field{
		{"_meta", into, program, "Meta", ""},
	}, taskFields...)},
	{name: "ExtensionTask", need: []string{"taskId", "status"}, fields: append([]field{
		{"resultType", check, program, "resulttype", ""},
		{"_meta", into, program, "Meta", ""},
		{"ttlMs", check, program, "ttl", ""},
		{"pollIntervalMs", check, program, "count", ""},
		{"result", into, model, "CallToolResult", "framed as the result of the tool that the task runs"},
		{"error", into, modelHuman, "Error", ""},
		{"inputRequests", into, modelHuman, "InputRequests", ""},
		{"requestState", check, program, "state", "likewise, with its task"},
	}, taskFields...)},
	{name: "ListTasksResult", need: []string{"tasks"}, fields: append([]field{
		{"tasks", into, modelHuman, "[]Task", ""},
	}, pageFields...)},
	{name: "ListToolsResult", need: []string{"tools"}, fields: append([]field{
		{"tools", into, everyone, "[]Tool", "a definition that breaks a rule is withheld, the others are listed"},
	}, pageFields...)},
	{name: "ListPromptsResult", need: []string{"prompts"}, fields: append([]field{
		{"prompts", into, everyone, "[]Prompt", ""},
	}, pageFields...)},
	{name: "ListResourcesResult", need: []string{"resources"}, fields: append([]field{
		{"resources", into, everyone, "[]Resource", ""},
	}, pageFields...)},
	{name: "ListResourceTemplatesResult", need: []string{"resourceTemplates"}, fields: append([]field{
		{"resourceTemplates", into, everyone, "[]ResourceTemplate", ""},
	}, pageFields...)},
	{name: "InitializeResult", need: []string{"protocolVersion", "capabilities", "serverInfo"}, fields: []field{
		{"protocolVersion", check, program, "version", ""},
		{"capabilities", into, program, "ServerCapabilities", ""},
		{"serverInfo", into, modelHuman, "Implementation", ""},
		{"instructions", drop, model, "instructions", "hosts paste them into the system prompt; framed when the operator chooses so"},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "DiscoverResult", need: []string{"supportedVersions", "capabilities"}, fields: []field{
		{"supportedVersions", check, program, "versions", ""},
		{"capabilities", into, program, "ServerCapabilities", ""},
		{"serverInfo", into, modelHuman, "Implementation", ""},
		{"instructions", drop, model, "instructions", "hosts paste them into the system prompt; framed when the operator chooses so"},
		{"resultType", check, program, "resulttype", ""},
		{"ttlMs", check, program, "cachettl", "at most an hour"},
		{"cacheScope", fixed, program, "private", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "ServerCapabilities", fields: []field{
		{"tools", into, program, "ServerCapabilities.flags", ""},
		{"prompts", into, program, "ServerCapabilities.flags", ""},
		{"resources", into, program, "ServerCapabilities.flags", ""},
		{"logging", into, program, "Empty", ""},
		{"completions", into, program, "Empty", ""},
		{"tasks", into, program, "ServerCapabilities.tasks", ""},
		{"extensions", into, program, "ServerCapabilities.extensions", ""},
		{"experimental", drop, program, "", "an extension the table does not know may carry text it does not frame"},
	}},
	{name: "ServerCapabilities.flags", also: []string{"ServerCapabilities.tools", "ServerCapabilities.prompts", "ServerCapabilities.resources"}, fields: []field{
		{"listChanged", check, program, "bool", ""},
		{"subscribe", check, program, "bool", ""},
	}},
	{name: "ServerCapabilities.tasks", fields: []field{
		{"list", into, program, "Empty", ""},
		{"cancel", into, program, "Empty", ""},
		{"requests", into, program, "ServerCapabilities.tasks.requests", ""},
	}},
	{name: "ServerCapabilities.tasks.requests", fields: []field{
		{"tools", into, program, "ServerCapabilities.tasks.requests.tools", ""},
	}},
	{name: "ServerCapabilities.tasks.requests.tools", fields: []field{
		{"call", into, program, "Empty", ""},
	}},
	{name: "ServerCapabilities.extensions", fields: []field{
		{"io.modelcontextprotocol/tasks", into, program, "Empty", ""},
		{"*", drop, program, "", "an extension the table does not know may carry text it does not frame"},
	}},
	{name: "Empty", also: []string{"Result", "EmptyResult"}, fields: []field{
		{"resultType", check, program, "resulttype", ""},
		{"_meta", into, program, "Meta", ""},
		{"*", drop, modelHuman, "", ""},
	}},
	{name: "SubscriptionsListenResult", fields: []field{
		{"resultType", check, program, "resulttype", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "PaginatedResult", also: []string{"CacheableResult"}, fields: pageFields},
}

// pageFields are the members of every list.
var pageFields = []field{
	{"nextCursor", check, program, "cursor", "opaque, at most 4 KiB"},
	{"resultType", check, program, "resulttype", ""},
	{"ttlMs", check, program, "cachettl", "at most an hour"},
	{"cacheScope", fixed, program, "private", "lists depend on who asks"},
	{"_meta", into, program, "Meta", ""},
}

var taskFields = []field{
	{"taskId", check, program, "opaque", "the gateway remembers which tool it belongs to"},
	{"status", check, program, "taskstatus", ""},
	{"statusMessage", frame, modelHuman, "short", ""},
	{"createdAt", check, program, "stamp", ""},
	{"lastUpdatedAt", check, program, "stamp", ""},
	{"ttl", check, program, "ttl", ""},
	{"pollInterval", check, program, "count", ""},
}
