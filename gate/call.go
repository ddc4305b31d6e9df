package gate

// Call is one tool call as the gate judges it.
type Call struct {
	Server, Tool string
	Args         map[string]any
	Principal    string // who the client is, "" on stdio

	// Paths gives the resolved form of paths in Args, as the caller found it on its disk (symbolic links followed). A path
	// that is absent is compared as written, after cleaning: the gate itself reads no disk.
	Paths map[string]string
}
