package nodes

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
)

// Hops is the way of calls through proxies among the nodes: as the tap saw the proxies call the next, else in the order
// in which the nodes were named. Nil: there is no proxy among them, or it is not known which is one.
func Hops(c *facts.Case) []account.HopTimes {
	var nodes []string
	for _, n := range c.Nodes {
		nodes = append(nodes, n.Address)
	}
	chain := c.Ledger.Chain(nodes)
	if chain == nil {
		chain = namedHops(c)
	}
	if chain == nil {
		return nil
	}
	return c.Ledger.HopTimes(c.Rec, chain)
}

// namedHops are the nodes in the order in which they were named, where those before the last lead to it: by INFO at
// least one of them is the same server, and none another.
func namedHops(c *facts.Case) []account.Hop {
	last := len(c.Nodes) - 1
	if last < 1 || runID(c.Nodes[last]) == "" {
		return nil
	}
	var chain []account.Hop
	known := false
	for i, n := range c.Nodes {
		id := runID(n)
		if id != "" && id != runID(c.Nodes[last]) {
			return nil
		}
		known = known || i < last && id != ""
		chain = append(chain, account.Hop{
			Node: n.Address, Process: c.Ledger.ProcessAt(n.Address), Proxy: i < last,
		})
	}
	if !known {
		return nil
	}
	return chain
}

// runID is what the server that answers at a node says that it is; empty where it has no INFO.
func runID(n *facts.Node) string {
	for _, t := range n.InfoTexts {
		if t.RunID != "" {
			return t.RunID
		}
	}
	return ""
}
