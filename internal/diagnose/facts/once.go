package facts

// found are facts that many causes ask for, by their names.
type found map[string]any

// Finder is a case or a node, which keeps what was found about it.
type Finder interface{ found() found }

func (c *Case) found() found { return keep(&c.facts) }

func (n *Node) found() found { return keep(&n.facts) }

func keep(facts *found) found {
	if *facts == nil {
		*facts = found{}
	}
	return *facts
}

// Once is what find finds about a case or a node: it is called once for each, and name is that of the fact.
func Once[Of Finder, T any](of Of, name string, find func(Of) T) T {
	facts := of.found()
	if fact, ok := facts[name]; ok {
		return fact.(T)
	}
	fact := find(of)
	facts[name] = fact
	return fact
}
