package gateway

// notificationObjects: params of what a server sends unasked.
var notificationObjects = []object{
	{name: "NotificationParams", also: []string{"JSONRPCNotificationParams"}, fields: []field{
		{"_meta", into, program, "Meta", ""},
		{"*", drop, everyone, "", ""},
	}},
	{name: "ProgressNotificationParams", need: []string{"progressToken", "progress"}, fields: []field{
		{"progressToken", check, program, "id", "must be one the gateway issued; mapped back"},
		{"progress", check, program, "number", ""},
		{"total", check, program, "number", ""},
		{"message", frame, modelHuman, "short", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "LoggingMessageNotificationParams", need: []string{"level", "data"}, fields: []field{
		{"level", check, program, "level", ""},
		{"logger", clean, modelHuman, "name", ""},
		{"data", frame, modelHuman, "log", "any JSON: what is no string is framed as its JSON text"},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "CancelledNotificationParams", fields: []field{
		{"requestId", check, program, "id", "must be in flight; mapped back"},
		{"reason", clean, human, "line", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "ResourceUpdatedNotificationParams", need: []string{"uri"}, fields: []field{
		{"uri", check, everyone, "strictlyuri", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "ElicitationCompleteNotificationParams", need: []string{"elicitationId"}, fields: []field{
		{"elicitationId", check, program, "opaque", "must be one that was passed on"},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "SubscriptionsAcknowledgedNotificationParams", fields: []field{
		{"notifications", into, program, "SubscriptionFilter", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "SubscriptionFilter", fields: []field{
		{"toolsListChanged", check, program, "bool", ""},
		{"promptsListChanged", check, program, "bool", ""},
		{"resourcesListChanged", check, program, "bool", ""},
		{"resourceSubscriptions", check, program, "uris", ""},
		{"taskIds", check, program, "tasks", "of the tasks extension"},
	}},
}

// requestObjects: params of what a server asks its client.
var requestObjects = []object{
	{name: "CreateMessageRequestParams", need: []string{"messages", "maxTokens"}, fields: []field{
		{"messages", into, model, "[]SamplingMessage", ""},
		{"systemPrompt", frame, model, "text", "moved into a framed user message, never the system prompt"},
		{"includeContext", fixed, program, "none", "what other servers said is not this server's to read"},
		{"temperature", check, program, "number", ""},
		{"maxTokens", check, program, "tokens", "capped"},
		{"stopSequences", drop, program, "", "one that equals the closing tag would cut the frame short"},
		{"metadata", drop, program, "", "goes to the model's provider"},
		{"modelPreferences", into, program, "ModelPreferences", ""},
		{"tools", into, model, "sampling[]Tool", "dropped unless the operator allows tools in sampling"},
		{"toolChoice", into, program, "ToolChoice", "with tools only"},
		{"task", into, program, "TaskMetadata", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "SamplingMessage", need: []string{"role", "content"}, fields: []field{
		{"role", fixed, program, "user", "an assistant's role would put a server's words into the model's own mouth"},
		{"content", into, model, "SamplingMessageContentBlock", "one block or a list"},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "ModelPreferences", fields: []field{
		{"hints", into, program, "[]ModelHint", ""},
		{"costPriority", check, program, "fraction", ""},
		{"speedPriority", check, program, "fraction", ""},
		{"intelligencePriority", check, program, "fraction", ""},
	}},
	{name: "ModelHint", fields: []field{
		{"name", check, program, "word", ""},
	}},
	{name: "ToolChoice", fields: []field{
		{"mode", check, program, "toolchoice", ""},
	}},
	{name: "TaskMetadata", fields: []field{
		{"ttl", check, program, "count", ""},
	}},
	{name: "ElicitRequestFormParams", need: []string{"message", "requestedSchema"}, fields: []field{
		{"mode", check, program, "word", ""},
		{"message", frame, human, "short", "the frame says which server asks"},
		{"requestedSchema", into, human, "ElicitRequestFormParams.requestedSchema", ""},
		{"task", into, program, "TaskMetadata", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "ElicitRequestFormParams.requestedSchema", need: []string{"type", "properties"}, fields: []field{
		{"$schema", check, program, "https", ""},
		{"type", check, program, "word", ""},
		{"properties", into, human, "{}PrimitiveSchema", "a field that looks like a secret refuses the form"},
		{"required", check, program, "words", ""},
	}},
	{name: "PrimitiveSchema", also: []string{"StringSchema", "NumberSchema", "BooleanSchema", "EnumSchema", "LegacyTitledEnumSchema",
		"TitledSingleSelectEnumSchema", "UntitledSingleSelectEnumSchema", "TitledMultiSelectEnumSchema", "UntitledMultiSelectEnumSchema"},
		need: []string{"type"}, fields: []field{
			{"type", check, program, "schematype", ""},
			{"title", clean, human, "line", ""},
			{"description", clean, human, "prose", ""},
			{"default", drop, human, "", "no answer is filled in for the person"},
			{"format", check, program, "word", ""},
			{"minLength", check, program, "count", ""},
			{"maxLength", check, program, "count", ""},
			{"minimum", check, program, "number", ""},
			{"maximum", check, program, "number", ""},
			{"minItems", check, program, "count", ""},
			{"maxItems", check, program, "count", ""},
			{"enum", clean, human, "choices", ""},
			{"enumNames", clean, human, "choices", ""},
			{"oneOf", into, human, "[]Choice", ""},
			{"items", into, human, "Choices", ""},
		}},
	{name: "Choices", also: []string{"TitledMultiSelectEnumSchema.items", "UntitledMultiSelectEnumSchema.items"}, fields: []field{
		{"type", check, program, "schematype", ""},
		{"enum", clean, human, "choices", ""},
		{"anyOf", into, human, "[]Choice", ""},
	}},
	{name: "Choice", also: []string{"TitledMultiSelectEnumSchema.items.anyOf", "TitledSingleSelectEnumSchema.oneOf"}, need: []string{"const"}, fields: []field{
		{"const", clean, human, "line", ""},
		{"title", clean, human, "titled", "the value stands beside its label"},
	}},
	{name: "ElicitRequestURLParams", need: []string{"message", "url"}, fields: []field{
		{"mode", check, program, "word", ""},
		{"message", frame, human, "url", "the frame shows the host the address really leads to"},
		{"url", check, human, "address", "https, no user part, no inward host, not the gateway's own"},
		{"elicitationId", check, program, "opaque", ""},
		{"task", into, program, "TaskMetadata", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "RequestParams", also: []string{"PaginatedRequestParams", "GetTaskRequestParams", "GetTaskPayloadRequestParams", "CancelTaskRequestParams"}, fields: []field{
		{"cursor", check, program, "cursor", ""},
		{"taskId", check, program, "opaque", "a task of the client's own"},
		{"_meta", into, program, "Meta", ""},
		{"*", drop, everyone, "", ""},
	}},
}

// errorObjects: a refusal of the server. Codes with data that programs read are built again from members that hold.
var errorObjects = []object{
	{name: "Error", also: []string{"ParseError", "InvalidRequestError", "MethodNotFoundError", "InvalidParamsError", "InternalError"},
		need: []string{"code", "message"}, fields: []field{
			{"code", check, program, "integer", ""},
			{"message", frame, modelHuman, "text", ""},
			{"data", frame, modelHuman, "errordata", "known codes: built again from checked members; others: its JSON, framed"},
		}},
	{name: "URLElicitationRequiredError.data", fields: []field{
		{"elicitations", into, human, "[]ElicitRequestURLParams", ""},
		{"*", drop, everyone, "", ""},
	}},
	{name: "UnsupportedProtocolVersionError.data", fields: []field{
		{"supported", check, program, "versions", ""},
		{"requested", check, program, "version", ""},
	}},
	{name: "MissingRequiredClientCapabilityError.data", fields: []field{
		{"requiredCapabilities", into, program, "ClientCapabilityNames", ""},
	}},
	{name: "ClientCapabilityNames", fields: []field{
		{"roots", into, program, "Empty", ""},
		{"sampling", into, program, "ClientCapabilityNames.sampling", ""},
		{"elicitation", into, program, "ClientCapabilityNames.elicitation", ""},
		{"extensions", into, program, "ServerCapabilities.extensions", ""},
	}},
	{name: "ClientCapabilityNames.sampling", fields: []field{
		{"tools", into, program, "Empty", ""},
		{"context", into, program, "Empty", ""},
	}},
	{name: "ClientCapabilityNames.elicitation", fields: []field{
		{"form", into, program, "Empty", ""},
		{"url", into, program, "Empty", ""},
	}},
}

// messageObjects: the members around params and result. The gateway writes them itself, on both sides.
var messageObjects = []object{
	{name: "JSONRPCMessage", fields: []field{
		{"jsonrpc", fixed, program, "2.0", "another one is dropped"},
		{"id", check, program, "id", "the gateway's own on each side, mapped back by exact bytes"},
		{"method", check, program, "method", "one without a row is refused"},
		{"params", into, everyone, "params of the method", ""},
		{"result", into, everyone, "result of the method", "only for a request in flight, once"},
		{"error", into, everyone, "Error", ""},
	}},
}
