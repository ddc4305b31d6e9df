package gate

import (
	"fmt"
	"slices"
	"strings"
)

// What a verb at the head of a tool's name says it does.
type verbClass uint8

const (
	verbReads   verbClass = iota + 1
	verbMakes             // makes something new
	verbChanges           // works on something that is there
	verbDeletes
	verbSends
	verbFetches // asks an address for something
	verbPays
	verbShares
	verbInvites
	verbPublishes
	verbRuns
)

// verbs are English verbs as tool names use them. Nothing here names a product; an unknown verb is not a read.
var verbs = func() map[string]verbClass {
	m := map[string]verbClass{}
	for class, list := range map[verbClass]string{
		verbReads: `get list search find read show view check query look lookup describe count preview summarize summarise
			calculate compute compare validate verify inspect retrieve load open explain analyze analyse whoami status stat peek
			tail head grep glob match resolve translate convert estimate monitor watch ls cat directory tree is has can see`,
		verbMakes: `create add make new insert generate draft register schedule compose record log build init clone copy
			duplicate fork import write save store put note remember attach`,
		verbChanges: `update set edit modify change append rename move reschedule mark close reopen assign unassign label
			pin unpin star archive restore enable disable toggle configure merge rebase patch replace apply approve reject
			accept decline complete start stop pause resume lock unlock tag extend adjust sort reorder commit checkout reset
			snooze mute unmute follow unfollow rate vote like react click fill type press drag select`,
		verbDeletes:   `delete remove drop purge erase destroy trash wipe clear cancel unregister uninstall kick ban block terminate revoke truncate rm unsubscribe kill`,
		verbSends:     `send email mail message reply forward notify call dial text sms submit dispatch push sync export contact ask dm transmit`,
		verbFetches:   `fetch download request crawl scrape visit ping browse navigate`,
		verbPays:      `pay transfer buy purchase order refund donate withdraw deposit invest trade sell book reserve rent tip bid redeem charge`,
		verbShares:    `share grant permit allow expose unshare collaborate delegate`,
		verbInvites:   `invite enroll enrol join onboard admit`,
		verbPublishes: `publish post tweet release deploy announce broadcast comment blog upload`,
		verbRuns:      `run execute exec eval evaluate shell bash invoke spawn install compile script`,
	} {
		for w := range set(list) {
			m[w] = class
		}
	}
	return m
}()

// plainVerbs are never the thing that a tool is about.
var plainVerbs = set(`delete remove update create set edit modify write send pay execute run insert append replace rename move
	publish invite destroy erase purge drop wipe install deploy reset revoke grant`)

// nounVerbs are as often what a tool is about: "mail_find", "order_status", "standing_orders".
var nounVerbs = set(`mail email message text sms order post comment record log note label tag star archive share transfer purchase
	trade release tweet script review rate vote like stop start draft fork copy store change export import push contact request
	download submit call book rent tip bid charge redeem schedule reserve permit document file report list view status state look
	count match resolve watch head tail tree type press check clone react mark sort attach build compose upload explain notify
	visit ping crawl sync blog delegate support test can has is see open ask sell lock pin extend complete refund deposit`)

// findVerb is the index of the word of the name that says what is done; -1 where none does. A word that may be a thing gives
// way to a verb behind it, and is no verb at the end of a name that begins with something else.
func (d *drafter) findVerb() int {
	first := -1
	for i, w := range d.name {
		if verbs[w] == 0 {
			continue
		}
		if !nounVerbs[w] {
			return i
		}
		if first < 0 {
			first = i
		}
	}
	if first > 0 && first == len(d.name)-1 && len(d.desc) > 0 && verbs[base(d.desc[0])] != 0 {
		return -1 // "bank_transfer": the description decides
	}
	return first
}

// makes reports whether the tool's name says that it makes something new, so that the id in its result is one that this
// session brought into being.
func makes(tool string) bool {
	d := drafter{name: camel(tool)}
	i := d.findVerb()
	return i >= 0 && verbs[d.name[i]] == verbMakes
}

// argument words, by what they make of an argument.
var (
	mailWords    = set(`email mail cc bcc`)
	peopleWords  = set(`recipient to participant attendee invitee guest sender from`)
	linkWords    = set(`url uri link href endpoint webhook website site page_url callback`)
	hostWords    = set(`host hostname domain server ip address_ip`)
	accountWords = set(`iban account bic swift card routing payee beneficiary wallet`)
	phoneWords   = set(`phone telephone tel mobile fax`)
	pathWords    = set(`path file filename filepath dir directory folder destination source target dest src cwd repo_path workdir`)
	ownerWords   = set(`owner org organization organisation namespace`)
	repoWords    = set(`repo repository project`)
	nameWords    = set(`user username member channel room group team owner repo repository organization organisation org project branch
		company hotel restaurant venue shop store vendor merchant supplier provider contact person assignee reviewer name
		label_name topic queue bucket table database collection workspace list board calendar item product recipient handle
		first_name last_name street city zip country address ref base head device service app plan package customer client
		employee doctor flight airline seat ticket event meeting playlist tag secret_name environment role permission_for`)
	secretWords  = set(`password passwd passphrase pin secret token key credential otp`)
	codeWords    = set(`command cmd code script expression sql statement program shell args argv`)
	commandWords = set(`command cmd script sql shell program`)
	contentWords = set(`body content text message msg comment caption note amount subject reference`)
	memoWords    = set(`reference memo purpose`)
	anchorWords  = set(`title subject name heading headline summary`)
	textWords    = set(`body content text message msg description subject title note comment caption summary reason query question prompt
		location amount price sum total currency date time day start end begin duration deadline due recurring repeat
		interval frequency permission status state priority color colour format limit count n page offset size rating
		quantity number_of read all type kind mode language timezone locale html markdown data details memo reminder
		template header footer draft heading headline emoji reaction label tags sort order level year month hour minute`)
)

// deeds is what the words of a name or description say about a class.
var (
	moneyWords      = set(`money payment transaction invoice purchase order booking reservation rental refund transfer funds balance subscription cart`)
	credentialWords = set(`password passwd credential secret token apikey key passphrase otp mfa 2fa permission_self`)
	settingsWords   = set(`profile setting settings preference account info information credential`)
	publicWords     = set(`public webpage website blog tweet release`)
	memberWords     = set(`user member collaborator admin role participant_role`)
	ownData         = set(`date time day today clock timezone balance iban currency setting preference profile contact me whoami self info
		information version quota limit name address own current my user account number scheduled transaction payment standing order phone email
		holiday weekday calendar_day`)
	plainNouns = set(`info information name address own current my user account number email phone calendar_day`)
)

// Draft proposes labels for a tool from its name, description and schema. They are a draft: a person reads them, with the
// reason beside each, before they count. A tool of which nothing is recognised is [Unknown], with every argument binding.
// The server's own hints can add caution and never take it away, and so can its description.
func Draft(def ToolDef) ToolLabels {
	l := ToolLabels{Server: def.Server, Tool: def.Name}
	name := camel(def.Name)
	d := drafter{labels: &l, name: name, desc: firstSentence(def.Description), props: properties(def.InputSchema)}
	d.effects(def)
	d.class()
	d.arguments()
	d.trust(def)
	return l
}

type drafter struct {
	labels *ToolLabels
	name   []string
	desc   []string
	props  []property
	verb   verbClass
	cost   Class
	object []string // the nouns of the name
}

func (d *drafter) because(format string, args ...any) {
	d.labels.Reasons = append(d.labels.Reasons, fmt.Sprintf(format, args...))
}

// effects reads the verbs of the name, then lets the description, the arguments and the hints add to them.
func (d *drafter) effects(def ToolDef) {
	l := d.labels
	at := d.findVerb()
	for i, w := range d.name {
		if i == at {
			d.verb = verbs[w]
			l.Effects |= effectsOf(d.verb)
			d.because("%s: the name says %q", effectsOf(d.verb), w)
			continue
		}
		d.object = append(d.object, w)
		if v := verbs[w]; i > at && at >= 0 && plainVerbs[w] && effectsOf(v).Acting() && (i == len(d.name)-1 || d.name[i-1] == "and") {
			l.Effects |= effectsOf(v) // "find_and_replace", "status_update"
			d.verb = v
			d.because("%s: the name also says %q", effectsOf(v), w)
		}
	}
	if len(d.desc) > 0 {
		v := verbs[base(d.desc[0])]
		switch {
		case v == 0:
		case at < 0: // "standing_orders", "weather": the name is what the tool is about
			d.verb = v
			l.Effects |= effectsOf(v)
			if v == verbReads && slices.ContainsFunc(d.props, property.carries) {
				l.Effects |= Unknown
			}
			d.because("%s: no verb in the name; the description begins with %q", l.Effects, d.desc[0])
		case v != verbReads && d.verb == verbReads:
			l.Effects |= effectsOf(v)
			d.verb = v
			d.because("%s: the description begins with %q", effectsOf(v), d.desc[0])
		}
	}
	for _, p := range d.props {
		switch {
		case p.is(codeWords) && p.text() && l.Effects != Read:
			l.Effects |= Exec
			d.because("exec: the argument %s holds code or a command", p.name)
		case (p.is(commandWords) || p.name == "code") && p.text():
			l.Effects |= Exec
			d.because("exec: the argument %s holds code or a command", p.name)
		case p.kind() == Link || p.kind() == Host && d.verb == verbReads && !p.is(set("domain server")):
			l.Effects |= Send
			d.because("send: the argument %s chooses where a request goes", p.name)
		case p.kind() == Mail && l.Effects&Write != 0 && l.Effects&Send == 0:
			l.Effects |= Send
			d.because("send: the argument %s chooses who gets it", p.name)
		}
	}
	if l.Effects == 0 {
		l.Effects = Unknown
		d.because("write+send: nothing in the name or description is recognised")
	}
	if hint(def.Annotations, "destructiveHint", true) && !l.Effects.Acting() {
		l.Effects |= Write
		d.because("write: the server says that it may destroy")
	}
	if hint(def.Annotations, "readOnlyHint", false) && !l.Effects.Acting() {
		l.Effects |= Write
		d.because("write: the server says that it does not only read")
	}
}

func effectsOf(v verbClass) Effects {
	switch v {
	case verbReads:
		return Read
	case verbMakes, verbChanges, verbDeletes:
		return Write
	case verbFetches:
		return Send
	case verbSends, verbPays, verbShares, verbInvites, verbPublishes:
		return Write | Send
	case verbRuns:
		return Exec
	}
	return Unknown
}

// class says what a wrong argument costs. The deed comes first, then what it is done to.
func (d *drafter) class() {
	l := d.labels
	if !l.Effects.Acting() {
		return
	}
	has := func(words map[string]bool) string {
		for _, w := range d.name {
			if words[w] {
				return w
			}
		}
		return ""
	}
	why := ""
	switch {
	case d.verb == verbDeletes:
		d.cost, why = Deletion, "it takes something away"
	case d.verb == verbInvites, d.verb == verbMakes && has(memberWords) != "" && !slices.Contains(d.name, "create"):
		d.cost, why = Invitation, "it makes someone a member"
	case has(credentialWords) != "":
		d.cost, why = Credential, "it touches a "+has(credentialWords)
	case d.verb == verbPays, has(moneyWords) != "":
		d.cost, why = Money, "it spends or books"
	case d.verb == verbChanges && has(settingsWords) != "":
		d.cost, why = Credential, "it changes the account's own data"
	case d.verb == verbShares:
		d.cost, why = Sharing, "it changes who can read something"
	case has(publicWords) != "" && l.Effects&Write != 0 && d.verb != verbSends, slices.Contains(d.name, "publish"), slices.Contains(d.name, "deploy"):
		d.cost, why = Publishing, "anyone can read it afterwards"
	case l.Effects&Exec != 0:
		d.cost, why = Unclassed, "it runs something"
	case d.verb == 0:
		d.cost, why = Unclassed, "nothing is known about it"
	default:
		d.cost, why = Ordinary, ""
	}
	if why != "" {
		d.because("%s: %s", d.cost, why)
	}
}

// arguments sorts the arguments into those that say who or what, and text.
func (d *drafter) arguments() {
	l := d.labels
	if !l.Effects.Acting() {
		return
	}
	for _, p := range d.props {
		kind, why := p.binding(d)
		switch {
		case why == "":
			l.Text = append(l.Text, p.name)
			if p.is(anchorWords) && p.text() {
				l.Anchor = append(l.Anchor, p.name)
			}
		default:
			l.Bind = append(l.Bind, Binding{Path: p.name, Kind: kind, Class: d.cost, Reason: why})
		}
	}
}

// trust proposes whether results may hold a third party's words. Almost all may.
func (d *drafter) trust(def ToolDef) {
	l := d.labels
	if hint(def.Annotations, "openWorldHint", true) || l.Effects&Exec != 0 || l.Effects == Unknown && d.verb == 0 {
		return
	}
	switch d.verb {
	case verbReads:
		if l.Effects != Read || len(d.object) == 0 {
			return
		}
		special := false
		for _, w := range d.object {
			if !ownData[w] && !stopWords[w] {
				return
			}
			special = special || !plainNouns[w]
		}
		if special || slices.Contains(d.object, "info") || slices.Contains(d.object, "information") {
			l.Trusted = true
			d.because("trusted result: it tells of the user's own %s", strings.Join(d.object, " "))
		}
	case verbMakes, verbPays, verbInvites:
		if slices.ContainsFunc(l.Bind, func(b Binding) bool { return b.Kind == ID }) {
			return // it works on something that is there, and may repeat it
		}
		l.Trusted = true
		d.because("trusted result: it repeats what the call made")
	case verbSends:
		if l.Effects&Write != 0 && len(l.Bind) > 0 && len(l.Text) > 0 && !d.takesLink() {
			l.Trusted = true
			d.because("trusted result: it repeats what was sent")
		}
	case verbChanges:
		if d.cost == Credential || d.cost == Money {
			l.Trusted = true
			d.because("trusted result: it repeats the user's own data")
		}
	}
}

func (d *drafter) takesLink() bool {
	return slices.ContainsFunc(d.props, func(p property) bool { k := p.kind(); return k == Link || k == Host || k == Path || k == ID })
}

// base cuts the third person off a verb: "sends", "deletes", "copies", "searches".
func base(w string) string {
	if verbs[w] != 0 {
		return w
	}
	for _, cut := range []struct{ suffix, put string }{{"ies", "y"}, {"es", ""}, {"s", ""}, {"ing", ""}, {"ing", "e"}} {
		if stem, ok := strings.CutSuffix(w, cut.suffix); ok && verbs[stem+cut.put] != 0 {
			return stem + cut.put
		}
	}
	return w
}

func firstSentence(s string) []string {
	if len(s) > maxValue {
		s = s[:maxValue]
	}
	for _, clause := range clauses(strings.TrimSpace(s)) {
		if w := words(clause); len(w) > 0 {
			return w
		}
	}
	return nil
}

func hint(annotations map[string]any, name string, want bool) bool {
	v, ok := annotations[name].(bool)
	return ok && v == want
}

// Complete fills in what an operator's labels leave open, from the draft of the same tool: the kinds and classes of binding
// arguments that were only named, and which arguments name what is made. What the operator said stays. Labels without any
// effect are replaced by the whole draft.
func Complete(l ToolLabels, def ToolDef) ToolLabels {
	draft := Draft(def)
	if l.Effects == 0 {
		return draft
	}
	l.Server, l.Tool = def.Server, def.Name
	l.Bind = slices.Clone(l.Bind)
	cost := Unclassed
	if len(draft.Bind) > 0 {
		cost = draft.Bind[0].Class
	}
	for i, b := range l.Bind {
		if b.Class == Unclassed {
			l.Bind[i].Class = cost
		}
		if j := slices.IndexFunc(draft.Bind, func(d Binding) bool { return d.Path == b.Path }); j >= 0 && b.Kind == Any {
			l.Bind[i].Kind = draft.Bind[j].Kind
		}
	}
	if l.Anchor == nil {
		for _, a := range draft.Anchor {
			if slices.Contains(l.Text, a) {
				l.Anchor = append(l.Anchor, a)
			}
		}
	}
	return l
}
