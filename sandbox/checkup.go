package sandbox

// Check is one row of a [Checkup]: an attempt that must be refused, or something that must work.
type Check struct {
	Name   string `json:"name"`
	Must   string `json:"must"` // "be refused" or "work"
	Answer string `json:"answer"`
	OK     bool   `json:"ok"`
}

// Checkup is what [Examine] found.
type Checkup struct {
	Report Report  `json:"report"`
	Checks []Check `json:"checks"`
}

// OK says that every check holds.
func (c Checkup) OK() bool {
	for _, k := range c.Checks {
		if !k.OK {
			return false
		}
	}
	return len(c.Checks) > 0
}
