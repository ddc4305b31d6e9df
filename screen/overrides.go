package screen

import (
	"context"
	"sync"
)

// findOverrides finds phrases that speak to whoever reads the text and not about anything. It only flags by default.
func findOverrides(ctx context.Context, in *subject) ([]Finding, error) {
	v := in.see()
	var found []Finding
	for _, m := range phrases().find(v.text, func() bool { return ctx.Err() != nil }) {
		start, end := v.back(m.start, m.end)
		found = append(found, Finding{Rule: m.rule.ID, Start: start, End: end})
	}
	return found, nil
}

// phrases are the patterns of override_phrases, by what they try to do. Each begins with one of its keywords.
var phrases = sync.OnceValue(func() *ruleset {
	const (
		all   = `(?:\s+(?:all|any|every|each|the|your|my|our|of|these|those|this|that|other|and|or)){0,4}`
		prior = `\s+(?:previous|prior|above|earlier|preceding|former|foregoing|past|existing|original|initial|current|system|other)(?:\s+(?:system|user|and|or|previous|prior|above|given|safety|security)){0,3}`
		what  = `\s+[a-z]{0,3}?(?:instr?[a-z]{0,2}ctions?|iunstructions?|directions?|directives?|prompts?|rules?|orders?|commands?|guidelines?|polic(?:y|ies)|messages?|context|guardrails?|restrictions?|constraints?|tasks?)\b`
	)
	return newRuleset([]*rule{
		{ID: "ignore-instructions", Keywords: []string{"ignore", "disregard", "forget", "override", "bypass", "skip", "discard", "neglect"},
			Regex: `(?i)\b(?:ignore|disregard|forget|override|bypass|skip|discard|neglect)` + all + `(?:` + prior + what + `|\s+(?:your|the|all|any|these|system)` + what + `(?:\s+(?:above|before|given|you))|\s+everything\s+(?:above|before|you\s+(?:were|have\s+been)\s+told)|\s+what\s+(?:you\s+(?:were|have\s+been)\s+told|i\s+said))`},
		{ID: "ignore-instructions-translated", Keywords: []string{"ignorez", "ignoriere", "ignora", "vergiss", "oublie", "olvida", "忽略", "无视", "игнорируй", "забудь"},
			Regex: `(?i)(?:ignorez\s+(?:toutes\s+)?les\s+instructions|ignoriere?n?\s+(?:sie\s+)?(?:alle\s+)?(?:vorherigen|bisherigen|obigen)\s+(?:anweisungen|befehle)|vergiss\s+(?:alle\s+)?(?:vorherigen|bisherigen)|ignora\s+(?:todas\s+)?(?:las|le)\s+(?:instrucciones|istruzioni)|oublie[zr]?\s+(?:toutes\s+)?(?:les|tes|vos)\s+instructions|olvida\s+(?:todas\s+)?(?:las|tus)\s+instrucciones|(?:忽略|无视)(?:之前|以上|先前|前面|上面|所有)\S{0,6}(?:指令|指示|命令|提示|规则)|игнорируй(?:те)?\s+(?:все\s+)?предыдущие|забудь(?:те)?\s+(?:все\s+)?предыдущие)`},
		{ID: "new-instructions", Keywords: []string{"new instructions", "new task", "your new", "updated instructions", "strictly adhere", "the following instruction"},
			Regex: `(?i)(?:new\s+instructions?\s*(?:follow|:|are\b)|new\s+task\s*:|your\s+new\s+(?:task|instructions?|role|goal|objective)\s+(?:is|are)\b|updated\s+instructions?\s*:|strictly\s+adhere\s+to\s+the\s+following|the\s+following\s+instructions?\s+(?:supersede|override|replace|take\s+precedence))`},
		{ID: "false-authority", Keywords: []string{"important message from", "message from the", "as your developer", "as your creator", "this is the system", "the user has approved", "user has also approved", "authorized by", "###", "system_message", "system override", "admin override"},
			Regex: `(?i)(?:important\s+message\s+from\s+(?:me|the|your)\b|message\s+from\s+the\s+(?:system|developers?|administrator|user)\s+to\s+(?:you|the)|as\s+your\s+(?:developer|creator),|this\s+is\s+the\s+system\b|(?:the\s+)?user\s+has\s+(?:also\s+|already\s+)?approved\b|authori[sz]ed\s+by\s+(?:the\s+)?(?:user|admin|system)\s*[:,]|###\s*\(?(?:system|instruction)[_ ]?(?:message|prompt)?\)?|system_message|(?:system|admin)\s+override\b)`},
		{ID: "before-the-task", Keywords: []string{"before you can", "before you solve", "before answering", "before using this tool", "before doing anything", "after you do that", "stop what you", "stop what you're"},
			Regex: `(?i)(?:before\s+you\s+(?:can\s+)?(?:solve|do|complete|answer|finish)[^.\n]{0,80}(?:please\s+)?(?:do|complete|perform|call|read|send)|before\s+(?:answering|using\s+this\s+tool|doing\s+anything)[^.\n]{0,40},?\s+(?:first|you\s+(?:must|should)|always|please|read|call|send)|after\s+you\s+do\s+that,?\s+you\s+can\b|stop\s+what\s+you(?:'re|\s+are)?\s+doing)`},
		{ID: "secrecy", Keywords: []string{"do not tell", "don't tell", "do not mention", "don't mention", "do not inform", "without telling", "without informing", "never mention", "do not reveal", "ensuring it goes unnoticed", "without detection", "without leaving"},
			Regex: `(?i)(?:(?:do\s+not|don't|never)\s+(?:tell|mention|inform|alert|notify|reveal)\s+(?:this\s+)?(?:to\s+)?(?:the\s+)?(?:user|anyone|them|human|operator)|(?:do\s+not|don't|never)\s+(?:mention|reveal)\s+(?:this|that\s+you|these)|without\s+(?:telling|informing|notifying|alerting)\s+(?:the\s+)?(?:user|anyone|them|human|operator)|ensuring\s+it\s+goes\s+unnoticed|without\s+(?:leaving\s+(?:a|any)\s+trace|detection\b))`},
		{ID: "role-change", Keywords: []string{"you are now", "pretend to be", "act as an unrestricted", "developer mode", "jailbreak", "do anything now", "dan mode", "from now on"},
			Regex: `(?i)(?:you\s+are\s+now\s+(?:a|an|in|the|free|no\s+longer|dan)\b|pretend\s+to\s+be\s+(?:a|an)\s+(?:unrestricted|unfiltered|evil)|act\s+as\s+an?\s+(?:unrestricted|unfiltered)|(?:enable|enter|activate|switch\s+to)\s+developer\s+mode|developer\s+mode\s+(?:enabled|activated|on)\b|do\s+anything\s+now|\bdan\s+mode|from\s+now\s+on,?\s+you\s+(?:will|must|are|should|shall))`},
		{ID: "chat-markup", Keywords: []string{"<|im_", "<|system|", "<|user|", "<|assistant|", "[inst]", "<<sys>>", "<system>", "</system>", "<information>", "<important>", "<|start_header_id|", "<|eot_id|", "<system_prompt>"},
			Regex: `(?i)(?:<\|(?:im_(?:start|end)|system|user|assistant|start_header_id|eot_id)\|>|\[inst\]|<<sys>>|</?system>|</?system_prompt>|<information>|<important>)`},
		{ID: "prompt-theft", Keywords: []string{"reveal your", "print your", "repeat your", "show me your", "output your", "system prompt"},
			Regex: `(?i)(?:(?:reveal|print|repeat|show\s+me|output|leak|send)\s+(?:me\s+)?your\s+(?:system\s+|initial\s+|hidden\s+|full\s+)?(?:prompt|instructions)\b|(?:contents?\s+of|what\s+is)\s+(?:your|the)\s+system\s+prompt)`},
	}, allowlist{})
})
