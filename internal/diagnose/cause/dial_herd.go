package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/recording"
)

// dialHerd: the pool is cold, and all callers dial at once, or wait one after the other for a lock that is held while
// dialling. Catalogue B5.
var dialHerd = Cause{
	ID:    "dial-herd-or-serialised-dial",
	Title: "The client's pool is cold: its callers dial all at once, and the calls wait for their connections",
	Layer: "client",
	Needs: Needs{
		T0: "nothing: new connections that stay look like any pool that grows",
		T2: "many dials of one process at the same moment (or one right behind the other), on the way of calls, of " +
			"connections that stay and replace none",
	},
	// Connections that were taken away, and who is turned away, come back like that.
	After:   []string{"reconnect-herd", "maxclients", "accept-backlog-overflow"},
	Explain: explainDialHerd,
}

const (
	// rowLeast is how many dials one behind the other are no chance.
	rowLeast = 8
	// rowGap is what may lie between two of them, as a part of the one before: a lock that is handed on takes
	// microseconds.
	rowGap = 0.2
	// rowDialNs is from where on a dial is worth waiting for.
	rowDialNs = int64(1e6)
)

// stampede is connections that one caller opened together.
type stampede struct {
	*Caller
	conns []*Conn
	row   bool // one after the other
}

func (s stampede) costNs() (ns int64) {
	for i, k := range s.conns {
		ns += k.openingNs()
		if s.row {
			ns += int64(i) * k.DialNs // whoever comes later waits for all before
		}
	}
	return ns
}

func explainDialHerd(n *Node) *Finding {
	callers := n.callers()
	all := n.stampedes(callers)
	if len(all) == 0 {
		return nil
	}
	var cost int64
	var spells spans
	var conns []*Conn
	worst := all[0]
	for _, s := range all {
		cost += s.costNs()
		conns = append(conns, s.conns...)
		for _, k := range s.conns {
			spells = append(spells, [2]int64{k.opening().from, k.opening().to})
		}
		if s.costNs() > worst.costNs() {
			worst = s
		}
	}
	f, _ := n.openedTogether(callers, merge(spells), cost, spreadOf(conns, (*Conn).openingNs).high, 0.9)
	if f == nil {
		return nil
	}
	list := openingsOf(worst.conns)
	took := list[len(list)-1].to - list[0].from
	if worst.row {
		f.Title = "The client dials one connection after the other: calls wait for a lock that is held while dialling"
		f.support(recording.SourceTap, fmt.Sprintf("%s opened %d connections in a row in %s: each SYN left within "+
			"moments of the end of the dial before, none at the same time", worst.Name, len(list), dur(took)),
			float64(len(list)), "connections")
	} else {
		f.support(recording.SourceTap, fmt.Sprintf("%s opened %d connections within %s, up to %d at the same moment, "+
			"each with a call right behind its handshake", worst.Name, len(list), dur(took), sideBySide(list)),
			float64(len(list)), "connections")
	}
	opening := spreadOf(worst.conns, (*Conn).openingNs)
	f.support(recording.SourceTap, fmt.Sprintf("each took %s before its first command (one of ten %s and more), and "+
		"a call takes %s", dur(opening.mid), dur(opening.high), dur(worst.callNs())), float64(opening.mid), "ns")
	if alone, _, _ := n.prices(); float64(opening.mid) >= 2*float64(alone) && n.probedFresh() {
		f.support(recording.SourceProbe, fmt.Sprintf("a connection of slowpath's own costs %s: that many at once "+
			"slow each other down", dur(alone)), float64(alone), "ns")
	}
	f.support(recording.SourceTap, "none of them took the place of one that had been closed, and most were kept: the "+
		"pool was empty or too small, and filled", float64(len(list)), "connections")
	if len(all) > 1 {
		f.support(recording.SourceTap, fmt.Sprintf("that happened %d times in the watch, to %s", len(all),
			stampeders(all)), float64(len(all)), "times")
	}
	f.remote(worst.Caller)
	f.Fix = n.dialHerdFix(worst)
	f.See = []string{
		"https://github.com/redis/go-redis/pull/3088",
		"https://pkg.go.dev/github.com/redis/go-redis/v9#Options",
	}
	return f
}

func (n *Node) probedFresh() bool {
	p, ok := n.Ledger.Path(n.Address, "fresh")
	return ok && p.Calls > 0
}

func stampeders(all []stampede) string {
	var callers []*Caller
	for _, s := range all {
		if !slices.Contains(callers, s.Caller) {
			callers = append(callers, s.Caller)
		}
	}
	return callerNames(callers)
}

// stampedes are the herds and rows of dials in which callers filled their pools.
func (n *Node) stampedes(callers []*Caller) []stampede {
	back := map[*Conn]bool{}
	for _, l := range n.lossesAtOnce(callers) {
		for _, k := range l.back {
			back[k] = true
		}
	}
	var out []stampede
	for _, c := range callers {
		var fresh []*Conn
		ended := len(c.conns(func(k *Conn) bool { return k.By == recording.Client && k.CloseNs > 0 || k.CutNs > 0 }))
		for _, k := range c.opened() {
			if !back[k] && !k.ahead(c.callNs()) && k.Greeting != nil {
				fresh = append(fresh, k)
			}
		}
		if len(fresh) < rowLeast || 2*ended > len(fresh) {
			continue // they come and go: another habit of the pool, or of jobs
		}
		slices.SortStableFunc(fresh, func(a, b *Conn) int { return int(a.opening().from - b.opening().from) })
		out = append(out, c.herdsOf(fresh)...)
		out = append(out, c.rowsOf(fresh)...)
	}
	return out
}

// herdsOf are the groups of connections whose openings overlap.
func (c *Caller) herdsOf(fresh []*Conn) (out []stampede) {
	var group []*Conn
	until := int64(0)
	flush := func() {
		if len(group) >= herdLeast && sideBySide(openingsOf(group)) >= herdAtOnce {
			out = append(out, stampede{Caller: c, conns: group})
		}
		group = nil
	}
	for _, k := range fresh {
		o := k.opening()
		if o.from > until {
			flush()
		}
		group, until = append(group, k), max(until, o.to)
	}
	flush()
	return out
}

// rowsOf are the runs of dials of which each began when the one before was done.
func (c *Caller) rowsOf(fresh []*Conn) (out []stampede) {
	var row []*Conn
	flush := func() {
		if len(row) >= rowLeast {
			out = append(out, stampede{Caller: c, conns: row, row: true})
		}
		row = nil
	}
	for _, k := range fresh {
		if k.DialNs < rowDialNs {
			flush()
			continue
		}
		if last := len(row) - 1; last >= 0 {
			gap := k.OpenNs - k.DialNs - row[last].OpenNs
			if gap < 0 || float64(gap) > rowGap*float64(row[last].DialNs) {
				flush()
			}
		}
		row = append(row, k)
	}
	flush()
	return out
}

func (n *Node) dialHerdFix(s stampede) []string {
	needed := int(float64(s.calls())/n.Seconds()*float64(s.callNs())/1e9*2) + 2
	fix := []string{fmt.Sprintf("Open connections before they are needed: about %d do for %.3g calls per second of "+
		"%s; warm the pool up before the instance takes traffic (readiness)", min(needed, len(s.conns)),
		float64(s.calls())/n.Seconds(), dur(s.callNs()))}
	lines := map[string]string{
		"go-redis": fmt.Sprintf("go-redis: MinIdleConns: %d (0 by default), and MaxConcurrentDials (v9.17 and later; "+
			"PoolSize by default)", min(needed, len(s.conns))),
		"redigo": "redigo: Get and Close some connections at start; MaxIdle as large as MaxActive",
		"jedis":  "Jedis: setMinIdle(…) and pool.preparePool() (addObjects) at start",
		"redis-py": "redis-py: a few connections made at start and released; " +
			"BlockingConnectionPool(max_connections=…) bounds the herd",
	}
	if s.row {
		lines["go-redis"] = "go-redis: a release after August 2024, which does not hold the pool's lock while it " +
			"dials (PR 3088); MinIdleConns as well"
	}
	return append(fix, n.library(lines, "go-redis", "redigo", "jedis", "redis-py")...)
}
