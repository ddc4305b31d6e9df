package gate

// Call is one tool call as the gate judges it.
type Call struct {
	Server, Tool string
	Args         map[string]any
	Principal    string // who the client is, "" on stdio
}
