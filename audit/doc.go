// Package audit is the append-only, hash-chained record of decisions, and its offline check.
//
// [Open] opens or continues a log, [Log.Append] returns once the line is durable, and [Verify] checks a log without
// the program that wrote it. One line is one JSON object; it ends with the SHA-256 of everything before the hash on that
// line, and holds the hash of the line before it, so a line that was changed, cut, moved or taken out shows.
//
// # Limits
//
// The chain has no key: who can write the log and the head file beside it can write a whole new chain. Note a head
// ([Report.Last]) somewhere the writer cannot reach and pass it to [Verify] to be certain of everything up to it.
// A [Log.Note] is written with the next line that must be durable, or within a tenth of a second: a process that is killed before
// loses it. A digest of an argument that has few possible values can be guessed. Arguments, results and credentials never enter a
// line: an [Event] has no field for them, only for shapes and digests ([Shape], [Digest]).
package audit
