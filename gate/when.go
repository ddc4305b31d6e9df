package gate

import (
	"fmt"
	"strconv"
	"strings"
)

// parseTime reads a date, a time of day, or both, in the spellings that mean one thing: 2024-05-19, 2024-05-19 16:00,
// 2024-05-19T16:00:00Z, 16:00, June 13, 13 June 2024, May 15th, 2024. Day/month/year with slashes means two things and is none.
// The canonical form is year-month-day hour:minute with the parts that are there; a year that is not written is "*".
func parseTime(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 3 || len(s) > 40 {
		return "", false
	}
	date, clock := "", ""
	if d, rest, ok := isoDate(s); ok {
		date, s = d, strings.TrimLeft(rest, " T")
		if s == "" {
			return date, true
		}
	}
	if c, ok := clockTime(s); ok {
		clock = c
		if date != "" {
			return date + " " + clock, true
		}
		return clock, true
	}
	if date != "" {
		return "", false
	}
	return wordDate(words(s))
}

func isoDate(s string) (date, rest string, ok bool) {
	if len(s) < 10 || s[4] != '-' || s[7] != '-' || !allDigits(s[:4]+s[5:7]+s[8:10]) {
		return "", "", false
	}
	if len(s) > 10 && s[10] != ' ' && s[10] != 'T' {
		return "", "", false
	}
	return validDate(atoi(s[:4]), atoi(s[5:7]), atoi(s[8:10]), s[10:])
}

func validDate(y, m, d int, rest string) (string, string, bool) {
	if m < 1 || m > 12 || d < 1 || d > 31 {
		return "", "", false
	}
	return fmt.Sprintf("%04d-%02d-%02d", y, m, d), rest, true
}

func clockTime(s string) (string, bool) {
	s = strings.TrimSuffix(strings.TrimSuffix(s, "Z"), "+00:00")
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return "", false
	}
	for _, p := range parts {
		if len(p) < 1 || len(p) > 2 || !allDigits(p) {
			return "", false
		}
	}
	h, m := atoi(parts[0]), atoi(parts[1])
	if h > 24 || m > 59 {
		return "", false
	}
	return fmt.Sprintf("%02d:%02d", h, m), true
}

// wordDate reads "june 13", "13 june 2024", "may 15th 2024": the words of the whole value and no others.
func wordDate(w []string) (string, bool) {
	if len(w) < 2 || len(w) > 3 {
		return "", false
	}
	m, d := months[w[0]], w[1]
	if m == 0 {
		m, d = months[w[1]], w[0]
	}
	for _, suffix := range []string{"st", "nd", "rd", "th"} {
		d = strings.TrimSuffix(d, suffix)
	}
	if m == 0 || !allDigits(d) || len(d) > 2 || atoi(d) < 1 || atoi(d) > 31 {
		return "", false
	}
	if len(w) == 2 {
		return fmt.Sprintf("*-%02d-%02d", m, atoi(d)), true
	}
	if !allDigits(w[2]) || len(w[2]) != 4 {
		return "", false
	}
	return fmt.Sprintf("%s-%02d-%02d", w[2], m, atoi(d)), true
}

// atoi is for strings already known to be a few digits.
func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
