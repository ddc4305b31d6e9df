// Package connect puts the gateway into the configuration file of an MCP client, and takes it out again.
//
// [Connect] makes the new text of such a file: each server that is started by a command is started by hearsay mcp instead,
// with that command behind it, or one entry is added that serves a hearsay.yaml. [Undo] gives the text without that. Both
// only plan; [Open] reads a file and [File.Write] replaces it, with a copy of what was there.
//
// A file is edited, never written anew: a parser tells where the values lie, their bytes are replaced, and the result is parsed
// again and compared with the file as it was, so that nothing but the entries can differ. Comments, the order of members,
// indentation and the spelling of every other value stay. The words of a server's own command are moved as they are spelled.
// Values of environment variables stay in the entry's env, which is the environment hearsay gets, and are named to it with
// --pass-env; they never become an argument.
//
// What connect changed is told from the copies it kept: an entry is restored if it is what connect makes of the same entry in
// a copy, and refused otherwise.
//
// # Limits
//
// A file that is neither JSON with comments and trailing commas nor TOML, that says the same name twice where it matters, or that
// is larger than [MaxFile] is refused. A client that keeps its configuration in memory and writes it back undoes the change
// without knowing; a write of another program between the last look and the rename is lost. Extended attributes and access
// lists are not kept, only owner, group and mode. What a client reads from elsewhere (plugins, extensions, an
// organisation's settings, a project's file) stays as it is.
package connect
