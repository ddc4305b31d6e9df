// Package screen looks at a text from outside before anyone reads it: hidden characters and terminal escapes, credentials, a
// result that only restates its request, phrases that try to override instructions.
//
// Most people need [New] and [Set.Check], which gives a verdict, the text to pass on and the findings. [Clean] is for labels:
// names, titles, descriptions, log messages.
//
// # Limits
//
// A screen sees what can be seen in a text. It does not detect attacks: words that persuade a model look like any other words,
// and an attacker who adapts writes around every list. What the agent may do has to be bounded elsewhere.
//
// Hidden text is removed where removing it loses nothing a person could see. What is visible and only suspicious (letters of
// another alphabet, comments of HTML, base64, long blanks) is reported and stays. Credentials are found by the shapes of a
// public rule set: one of another shape, or one that was encoded, is not found. A screen takes one text; what is split over two is
// not put together.
package screen
