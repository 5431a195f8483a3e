// Package facts is what a recording shows, computed once and typed: who calls and how, what happens to connections,
// what the server and its host went through, which libraries are in use. It knows no cause and no finding: what a fact
// is evidence for is said by the causes.
//
// A Case is a recording with its accounts, a Node one watched server of it. Most facts are methods of a Node; those of
// a whole cluster or of applications are methods of a Case. A Claim is time of slow calls that something explains.
//
// Names that end in Ns are nanoseconds: times since the Unix epoch, or durations.
package facts
