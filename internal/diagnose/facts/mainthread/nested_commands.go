package mainthread

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
)

// script reports that a command ran inside of a script: the server counts and logs it as well as the script.
func script(n *facts.Node, s account.Suspect) (Kind, bool) {
	name, _, _ := strings.Cut(s.Command, " ")
	if scriptCommands[name] || name == "EXEC" {
		return KindOther, false
	}
	for _, i := range scripts(n.Case)[s.Node] {
		if n.Ledger.Suspects[i].Holds(s) {
			return KindScriptOrMulti, true
		}
	}
	return KindOther, false
}

// scripts are the indexes of the suspects that are scripts, by node.
func scripts(c *facts.Case) map[string][]int {
	return facts.Once(c, "scripts", func(c *facts.Case) map[string][]int {
		out := map[string][]int{}
		for i := range c.Ledger.Suspects {
			s := &c.Ledger.Suspects[i]
			if name, _, _ := strings.Cut(s.Command, " "); scriptCommands[name] {
				out[s.Node] = append(out[s.Node], i)
			}
		}
		return out
	})
}

// longestWithin finds a command that was nearly all of an EXEC.
func longestWithin(n *facts.Node, exec account.Suspect) (account.Suspect, bool) {
	for i := range n.Ledger.Suspects {
		s := &n.Ledger.Suspects[i]
		if s.Kind == account.KindCommand && s.Node == exec.Node && s.Command != "EXEC" && exec.Holds(*s) {
			return *s, true
		}
	}
	return account.Suspect{}, false
}

// forkedWithin reports whether a command was nearly all of it a fork: CONFIG SET appendonly yes rewrites the file.
func forkedWithin(n *facts.Node, command account.Suspect) bool {
	for i := range n.Ledger.Suspects {
		s := &n.Ledger.Suspects[i]
		if s.Kind == account.KindFork && s.Node == command.Node && command.Holds(*s) {
			return true
		}
	}
	return false
}
