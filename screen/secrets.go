package screen

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"sync"
)

// The rules are those of gitleaks; rules/LICENSE-gitleaks is their licence.
//
//go:embed rules/gitleaks.json
var gitleaks []byte

// genericRule is the one rule that knows no service. What another rule finds as well is named by that rule.
const genericRule = "generic-api-key"

// tunings are for rules whose pattern has no bound or is met often: how a match starts, so that most keywords are refused at once.
var tunings = map[string]tuning{
	genericRule: {
		start: `(?i:access|auth|api|credential|creds|key|passw(?:or)?d|secret|token)[ \t\w.-]{0,20}[\s'"]{0,3}(?:=|>|:|\|\||\?=|,)[=:>\x60'"\s]{0,9}[\w.=+/-]{10}`,
		reach: 256,
	},
	"jwt":                             {start: `ey[a-zA-Z0-9]{17}`},
	"kubernetes-secret-yaml":          {needs: []string{"kind:", "data:"}},
	"hashicorp-tf-password":           {needs: []string{`resource "`}}, // its file's name would say that it is Terraform
	"airtable-personnal-access-token": {apart: true},
	"facebook-access-token":           {apart: true},
	"sourcegraph-access-token":        {apart: true},
}

// credentials reads the rule set, once for the process: it does not change.
var credentials = sync.OnceValue(func() *ruleset {
	var file struct {
		Allow allowlist `json:"allow"`
		Rules []*rule   `json:"rules"`
	}
	if err := json.Unmarshal(gitleaks, &file); err != nil {
		panic("screen: the embedded rules: " + err.Error())
	}
	for _, r := range file.Rules {
		r.tuning = tunings[r.ID]
	}
	return newRuleset(file.Rules, file.Allow)
})

// findSecrets finds credentials in the text as it is seen: characters that show nothing do not hide one.
func findSecrets(ctx context.Context, in *subject) ([]Finding, error) {
	v := in.see()
	matches := credentials().find(v.text, func() bool { return ctx.Err() != nil })
	var found []Finding
	for _, m := range matches {
		if m.rule.ID == genericRule && slices.ContainsFunc(matches, func(other match) bool {
			return other.rule.ID != genericRule && other.secretStart < m.secretEnd && m.secretStart < other.secretEnd
		}) {
			continue
		}
		start, end := v.back(m.secretStart, m.secretEnd)
		found = append(found, Finding{Rule: m.rule.ID, Start: start, End: end, Action: "redacted",
			edits: []edit{{start, end, "[redacted: " + m.rule.ID + "]"}}})
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Start, b.Start) })
	return found, nil
}
