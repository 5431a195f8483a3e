package facts

import (
	"strings"

	"slowpath/internal/diagnose/account"
)

// script reports that a command ran inside of a script: the server counts and logs it as well as the script.
func (n *Node) script(s account.Suspect) (Kind, bool) {
	name, _, _ := strings.Cut(s.Command, " ")
	if scriptCommands[name] || name == "EXEC" {
		return KindOther, false
	}
	for _, o := range n.Ledger.Suspects {
		outer, _, _ := strings.Cut(o.Command, " ")
		if o.Node == s.Node && scriptCommands[outer] && o.Holds(s) {
			return KindScriptOrMulti, true
		}
	}
	return KindOther, false
}

// longestWithin finds a command that was nearly all of an EXEC.
func (n *Node) longestWithin(exec account.Suspect) (account.Suspect, bool) {
	for _, s := range n.Ledger.Suspects {
		if s.Kind == account.KindCommand && s.Node == exec.Node && s.Command != "EXEC" && exec.Holds(s) {
			return s, true
		}
	}
	return account.Suspect{}, false
}

// forkedWithin reports whether a command was nearly all of it a fork: CONFIG SET appendonly yes rewrites the file.
func (n *Node) forkedWithin(command account.Suspect) bool {
	for _, s := range n.Ledger.Suspects {
		if s.Kind == account.KindFork && s.Node == command.Node && command.Holds(s) {
			return true
		}
	}
	return false
}
