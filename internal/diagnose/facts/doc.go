// Package facts has what a recording shows, computed once and typed: who calls and how, what happens to connections,
// what the server and its host went through, what libraries are in use. It knows no cause and no finding: what a fact
// is evidence for is said by the causes.
//
// A Case is a recording with its accounts; a Node is one watched server of it. Most facts are methods of a Node, some,
// of a whole cluster or of applications, of a Case. A Claim is time of slow calls.
package facts
