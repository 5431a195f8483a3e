// Package facts is what a recording shows, computed once and typed. It knows no cause and no finding: what a fact is
// evidence for is said by the causes.
//
// A Case is a recording with its accounts, a Node one watched server of it. A Claim is time of slow calls that
// something explains. The folders below have the facts by what they are about, as functions of a Node or a Case: hosts,
// caller, connection, mainthread, nodes. Each uses those before it, and none after.
//
// Names that end in Ns are nanoseconds: times since the Unix epoch, or durations.
package facts
