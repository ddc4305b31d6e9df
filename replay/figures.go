package replay

import "math"

// Figure is one number with the conditions under which it was counted. The names are those of its JSON form.
type Figure struct {
	Suite  string  `json:"suite"`  // "all" for the sum over the suites
	Agent  string  `json:"agent"`  // benign, hijacked, obedient-phrases
	Attack string  `json:"attack"` // none, static, adaptive
	Policy string  `json:"policy"` // grounded is the default of the gate; docs/replay.md lists the others
	Mode   string  `json:"mode"`   // deny: what asks is refused; ask: a person approves the user's calls and refuses the attacker's
	Labels string  `json:"labels"` // given, drafted
	Words  string  `json:"words"`  // with, without the user's words
	Name   string  `json:"figure"`
	Value  float64 `json:"value"` // a share between 0 and 1, or a number for each task
	N      int     `json:"n"`
	Low    float64 `json:"low"` // bounds of the 95 % interval
	High   float64 `json:"high"`
}

// z is the quantile of the normal distribution for an interval of 95 %.
const z = 1.959963984540054

// wilson is the score interval for k of n (Wilson 1927). Unlike the textbook interval it does not claim certainty at 0 and n.
func wilson(k, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	p, m := float64(k)/float64(n), float64(n)
	centre := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, centre-half), min(1, centre+half)
}

// count collects one figure: hits of tries, or a sum of small numbers over tries.
type count struct {
	n, sum, squares int
}

func (c *count) hit(yes bool) {
	if yes {
		c.add(1)
	} else {
		c.add(0)
	}
}

func (c *count) add(x int) { c.n++; c.sum += x; c.squares += x * x }

func (c *count) plus(o count) { c.n += o.n; c.sum += o.sum; c.squares += o.squares }

// share is the figure of a proportion, with Wilson's interval.
func (c count) share(f Figure) Figure {
	f.N = c.n
	if c.n > 0 {
		f.Value = round(float64(c.sum) / float64(c.n))
	}
	low, high := wilson(c.sum, c.n)
	f.Low, f.High = round(low), round(high)
	return f
}

// mean is the figure of an average number a task. Wilson's interval is for proportions; here it is the normal one.
func (c count) mean(f Figure) Figure {
	f.N = c.n
	if c.n == 0 {
		return f
	}
	m := float64(c.sum) / float64(c.n)
	half := z * math.Sqrt(max(0, float64(c.squares)/float64(c.n)-m*m)/float64(c.n))
	f.Value, f.Low, f.High = round(m), round(max(0, m-half)), round(m+half)
	return f
}

// round keeps six digits behind the point, so that output does not depend on the order of sums.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }
