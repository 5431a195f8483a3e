package agent

import (
	"maps"
	"slices"
)

// lookDue decides when what is on after the last verdict is looked at, and from when on: it goes on for long, or comes
// back, and may be another fault by now. Sooner where it is of another kind, or worse than it ever was. e.mu is held.
func (e *episodes) lookDue(c *episode, firing, goesOn []Firing) {
	if !c.final || len(firing) == 0 || len(goesOn) == 0 {
		return
	}
	due := func(from, at int64) {
		if c.lookFrom == 0 || at < c.lookAt && from > c.lookFrom {
			c.lookFrom, c.lookAt, c.again = from, at, 0
		}
	}
	soon := max(c.looked+leastApart, e.now+firstVerdict)
	for _, f := range firing {
		switch {
		case f.Most > worse*c.mostNs: // what went on before is no part of it
			due(f.Longest, soon)
		case !slices.Contains(c.kinds, f.Kind):
			due(f.Since, soon)
		}
	}
	if c.lookFrom == 0 { // it goes on since it was looked at, or came back since
		due(max(c.looked, c.back.since), max(c.looked+c.apart, e.now+firstVerdict))
	}
}

// look looks at it. e.mu is held.
func (e *episodes) look(c *episode) {
	from := c.lookFrom
	c.looking = true
	to := min(e.now, from+seconds(e.limits.Longest), max(c.end(), from+usersWindow))
	e.keep.look(c.id, c.nodes, span{from, to}, func(f found) {
		e.mu.Lock()
		defer e.mu.Unlock()
		c.looking = false
		if c.again++; !f.sure && c.again <= mostAgain {
			c.lookAt = e.now + usersWindow
			return
		}
		c.again, c.lookFrom, c.looked = 0, 0, e.now
		if !f.sure || c.causes[f.causes[0]] || !slices.Contains(e.current, c) {
			c.apart, c.patience = min(2*c.apart, mostApart), e.longer(c.patience)
			return
		}
		firing := e.firingOf(c, from)
		e.endBefore(c, from)
		e.over(c)
		next, err := e.begin(firing)
		if err != nil {
			e.refused = err
			return
		}
		maps.Copy(next.causes, c.causes) // where two faults take turns they do not begin an incident each time
	})
}

// endBefore ends an incident before another fault of the same nodes began. e.mu is held.
func (e *episodes) endBefore(c *episode, from int64) {
	if b := c.back; b.since != 0 && b.since <= from {
		c.lastBad, c.mostNs, c.slow, c.failed = b.lastBad, b.mostNs, b.slow, b.failed
	}
	c.lastBad = min(c.lastBad, from-1)
	e.keep.extend(c.id, c.end(), c.slow, c.failed)
}

// firingOf is what is on at the nodes of an incident, as triggers of another one that began then. e.mu is held.
func (e *episodes) firingOf(c *episode, since int64) (out []Firing) {
	all := e.triggers.firing(e.now, false)
	for _, f := range c.take(&all) {
		f.Since = since
		out = append(out, f)
	}
	if len(out) == 0 { // it is over already
		for _, node := range c.nodes {
			out = append(out, Firing{
				Kind: SlowCalls, Node: node, Since: since, Last: c.lastBad, Most: c.mostNs,
				Text: node + ": after " + c.id + " calls were slow for another cause",
			})
		}
	}
	return out
}
