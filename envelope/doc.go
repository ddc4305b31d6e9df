// Package envelope frames text that an agent reads and did not write, so that whose words they are stands in the text itself.
//
// Most people need [Envelope.Wrap], which cannot fail, and [Body], which gives the content of exactly one frame back. Text from
// outside is best held in [Untrusted] until it is framed. SPEC.md at the root of the module has the format for other languages.
//
// # Limits
//
// A frame is a label. It tells a model what is material; it refuses nothing, and it does not stop an attacker who adapts:
// published delimiting defences go from about 1 % attack success on a static benchmark to above 95 % against an adaptive
// attacker (Nasr et al., arXiv:2510.09023). What an agent may do has to be bounded elsewhere.
//
// A frame is not a proof either: [Body] and [Parse] say that a text is one frame, not who made it. The sealed form (a nonce)
// lets the one who made it recognise its end, and proves nothing to others.
package envelope
