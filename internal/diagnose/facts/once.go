package facts

// found are facts that many causes ask for, by their keys.
type found map[any]any

// factKey is the name of a fact with its type: two facts of one name are two.
type factKey[T any] string

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
	facts, key := of.found(), factKey[T](name)
	if fact, ok := facts[key].(T); ok {
		return fact
	}
	fact := find(of)
	facts[key] = fact
	return fact
}
