package gate

// Draft proposes labels for a tool from its name, description and schema. They are a draft: a person reads them, with the
// reason beside each, before they count. A tool that nothing is recognised about is [Unknown] with every argument binding.
func Draft(def ToolDef) ToolLabels {
	return ToolLabels{Server: def.Server, Tool: def.Name}
}
