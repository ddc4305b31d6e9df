// Package strictjson reads JSON once and strictly, and writes it again from what was read.
//
// [Parse] gives an immutable [Value]; [Value.Append] writes it. A part that nobody changed is written from the text it was
// read from, so numbers keep their digits and objects their order; a part that was built or changed is encoded anew.
// What was judged is therefore what is sent.
//
// One pass refuses what two readers could read differently: a name that occurs twice in an object, also when the two
// differ only in case (encoding/json lets "Name" override "name" and "paramſ" fill "params"), control characters in names,
// lone surrogates, a byte order mark, NaN, trailing data; and what is over a bound of [Limits]. Invalid UTF-8 is repaired
// to U+FFFD before anything is read.
//
// # Limits
//
// It knows no schema. A Value keeps the whole text it was read from alive: clone a small string that outlives its message.
// Strings are not normalised, so names that merely look alike are different names. White space between tokens is kept in
// parts that are written from their text, except line breaks: what Append writes is always one line.
package strictjson
