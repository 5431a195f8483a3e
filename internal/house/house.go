// Package house is the place of the tests that check the repository itself: which package may import which, that the
// documents say what the code has, that their examples run, and how tests are written. Below it is what tests of all
// packages share.
package house
