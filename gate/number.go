package gate

import (
	"encoding/json"
	"strconv"
	"strings"
)

// maxNumber bounds the literals that are compared as numbers; a longer one equals only itself.
const maxNumber = 64

// canonicalNumber writes a JSON number so that equal numbers have one spelling: digits without outer zeros, then the power
// of ten. It is "" for what is not a JSON number or is too long to compare. Nothing is rounded.
func canonicalNumber(lit string) string {
	if len(lit) > maxNumber {
		return ""
	}
	rest, neg := strings.CutPrefix(lit, "-")
	mantissa, expText, hasExp := rest, "", false
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa, expText, hasExp = rest[:i], rest[i+1:], true
	}
	whole, frac, hasFrac := strings.Cut(mantissa, ".")
	if !allDigits(whole) || hasFrac && !allDigits(frac) || len(whole) > 1 && whole[0] == '0' {
		return ""
	}
	exp := 0
	if hasExp {
		if !allDigits(strings.TrimPrefix(strings.TrimPrefix(expText, "+"), "-")) || strings.HasPrefix(expText, "+-") {
			return ""
		}
		var err error
		if exp, err = strconv.Atoi(expText); err != nil {
			return ""
		}
	}
	all := whole + frac
	exp -= len(frac)
	trimmed := strings.TrimRight(all, "0")
	exp += len(all) - len(trimmed)
	trimmed = strings.TrimLeft(trimmed, "0")
	if trimmed == "" {
		return "0"
	}
	sign := ""
	if neg {
		sign = "-"
	}
	return sign + trimmed + "e" + strconv.Itoa(exp)
}

// scalar gives the text of a JSON scalar, and whether it is a string. ok is false for lists, objects and foreign types.
func scalar(v any) (text string, isString, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true, true
	case bool:
		return strconv.FormatBool(v), false, true
	case nil:
		return "null", false, true
	case json.Number:
		return string(v), false, true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), false, true
	case int:
		return strconv.Itoa(v), false, true
	case int64:
		return strconv.FormatInt(v, 10), false, true
	}
	return "", false, false
}
