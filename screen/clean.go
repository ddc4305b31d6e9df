package screen

// Clean returns a label (a name, a title, a description, a log message) without what shows nothing: hidden characters, terminal escapes
// and other controls. It reports what it took out as the screen hidden_text does. Ordinary text comes back as it is.
//
// A label that was cleaned is as untrusted as before.
func Clean(label string) (string, []Finding) {
	if plain(label) {
		return label, nil
	}
	found := invisible(label)
	if len(found) == 0 {
		return label, nil
	}
	var edits []edit
	for i := range found {
		found[i].Screen = "hidden_text"
		edits = append(edits, found[i].edits...)
	}
	return apply(label, edits), found[:min(len(found), MaxFindings)]
}
