package gateway

// definitionObjects: what a server says it offers. A definition cannot be framed (the model is given it as a definition), so it is
// pinned, cleaned and validated: shown as approved or not at all.
var definitionObjects = []object{
	{name: "Tool", also: []string{"BaseMetadata"}, need: []string{"name", "inputSchema"}, fields: []field{
		{"name", pin, modelHuman, "toolname", "[A-Za-z0-9_./-]{1,128}; withheld otherwise"},
		{"title", pin, modelHuman, "line", ""},
		{"description", pin, model, "prose", ""},
		{"inputSchema", pin, model, "schema", "every string and every name in it; no remote $ref; bounded; an odd property name withholds the tool"},
		{"outputSchema", pin, model, "outputschema", "removed where structuredContent is folded"},
		{"annotations", into, human | program, "ToolAnnotations", "may add caution, never remove it"},
		{"execution", into, program, "ToolExecution", ""},
		{"icons", into, human, "[]Icon", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "ToolAnnotations", fields: []field{
		{"title", pin, modelHuman, "line", ""},
		{"readOnlyHint", check, program, "bool", ""},
		{"destructiveHint", check, program, "bool", ""},
		{"idempotentHint", check, program, "bool", ""},
		{"openWorldHint", check, program, "bool", ""},
	}},
	{name: "ToolExecution", fields: []field{
		{"taskSupport", check, program, "tasksupport", ""},
	}},
	{name: "Tool.inputSchema", also: []string{"Tool.outputSchema"}, fields: []field{
		{"*", pin, model, "schema", "property names, enum, const, default, examples, title, description, $comment, x-mcp-header"},
		{"$schema", pin, model, "schema", ""},
		{"type", pin, model, "schema", ""},
		{"properties", pin, model, "schema", ""},
		{"required", pin, model, "schema", ""},
	}},
	{name: "Prompt", need: []string{"name"}, fields: []field{
		{"name", pin, modelHuman, "toolname", ""},
		{"title", pin, modelHuman, "line", ""},
		{"description", pin, modelHuman, "prose", ""},
		{"arguments", into, modelHuman, "[]PromptArgument", ""},
		{"icons", into, human, "[]Icon", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "PromptArgument", need: []string{"name"}, fields: []field{
		{"name", pin, modelHuman, "toolname", ""},
		{"title", pin, modelHuman, "line", ""},
		{"description", pin, modelHuman, "prose", ""},
		{"required", check, program, "bool", ""},
	}},
	{name: "Resource", need: []string{"uri", "name"}, fields: []field{
		{"uri", check, everyone, "strictlyuri", "an entry with another one is withheld"},
		{"name", clean, modelHuman, "line", "lists of resources change too often to be pinned"},
		{"title", clean, modelHuman, "line", ""},
		{"description", clean, modelHuman, "prose", ""},
		{"mimeType", check, model | program, "mime", ""},
		{"size", check, program, "count", ""},
		{"annotations", into, program, "Annotations", ""},
		{"icons", into, human, "[]Icon", ""},
		{"_meta", into, program, "Meta", ""},
	}},
	{name: "ResourceTemplate", need: []string{"uriTemplate", "name"}, fields: []field{
		{"uriTemplate", check, everyone, "template", "an entry with another one is withheld"},
		{"name", pin, modelHuman, "line", ""},
		{"title", pin, modelHuman, "line", ""},
		{"description", pin, modelHuman, "prose", ""},
		{"mimeType", check, model | program, "mime", ""},
		{"annotations", into, program, "Annotations", ""},
		{"icons", into, human, "[]Icon", ""},
		{"_meta", into, program, "Meta", ""},
	}},
}
