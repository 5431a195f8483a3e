package mainthread

import (
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
)

// inScript reports whether a command ran inside of a script: the server counts and logs it as well as the script.
func inScript(n *facts.Node, s account.Suspect) bool {
	name, _, _ := strings.Cut(s.Command, " ")
	return !scriptCommands[name] && name != "EXEC" && slices.ContainsFunc(scripts(n.Case)[s.Node], func(i int) bool {
		return n.Ledger.Suspects[i].Holds(s)
	})
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

// within finds a suspect of a kind that was nearly all of a command; nil for none.
func within(n *facts.Node, command account.Suspect, kind string) *account.Suspect {
	for i := range n.Ledger.Suspects {
		s := &n.Ledger.Suspects[i]
		if s.Kind == kind && s.Node == command.Node && s.Command != "EXEC" && command.Holds(*s) {
			return s
		}
	}
	return nil
}
