package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// ConnectionsSchema names the JSON document of Connections (docs/json.md).
const ConnectionsSchema = "slowpath.connections/v1"

// Connections is how long connections were idle, and what came then, by caller.
type Connections struct {
	Schema  string       `json:"schema"`
	Callers []IdleCaller `json:"callers"` // those with most connections first
}

// IdleCaller is one caller of one node.
type IdleCaller struct {
	Node        string    `json:"node"`
	Peer        string    `json:"peer"` // what the node is: server or proxy
	Caller      string    `json:"caller"`
	Connections int       `json:"connections"`
	UsesSeen    bool      `json:"uses_seen"` // else it is not known what was used again
	Idle        []IdleRow `json:"idle"`
	// Ranges are the shortest and the longest of the idle times of a second or more, by what came then.
	Ranges map[facts.Then]IdleRange `json:"ranges"`
}

// IdleRow counts what came after an idle time of at least FromNs, and less than ToNs (0: no limit).
type IdleRow struct {
	FromNs int64                `json:"from_ns"`
	ToNs   int64                `json:"to_ns"`
	Then   map[facts.Then]int64 `json:"then"`
}

// IdleRange has times in nanoseconds.
type IdleRange struct {
	Count int   `json:"count"`
	MinNs int64 `json:"min_ns"`
	MaxNs int64 `json:"max_ns"`
}

// idleSteps are the bounds between the rows. Usual limits are a second or more above or below one: 5, 10, 15, 30, 60
// s, 5, 10, 30 min, 1 h.
var idleSteps = []time.Duration{
	0, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
	45 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour,
}

// maxIdleCallers bounds the tables; the JSON has all.
const maxIdleCallers = 10

// ConnectionsOf sums up a recording.
func ConnectionsOf(rec *recording.Recording) Connections {
	doc := Connections{Schema: ConnectionsSchema, Callers: []IdleCaller{}}
	c := facts.New(rec)
	peer := "server"
	if rec.Meta[recording.MetaKind] == "proxy" {
		peer = "proxy"
	}
	for _, n := range c.Nodes {
		for _, caller := range n.Callers() {
			doc.Callers = append(doc.Callers, idleCaller(n.Address, peer, caller, caller.IdleTimes(n.StartNs)))
		}
	}
	slices.SortStableFunc(doc.Callers, func(a, b IdleCaller) int { return b.Connections - a.Connections })
	return doc
}

func idleCaller(node, peer string, c *facts.Caller, t facts.IdleTimes) IdleCaller {
	out := IdleCaller{
		Node: node, Peer: peer, Caller: c.Name, Connections: len(c.Conns), UsesSeen: c.UsesSeen(),
		Idle: make([]IdleRow, len(idleSteps)), Ranges: map[facts.Then]IdleRange{},
	}
	for i, from := range idleSteps {
		out.Idle[i] = IdleRow{FromNs: int64(from), Then: map[facts.Then]int64{}}
		if i+1 < len(idleSteps) {
			out.Idle[i].ToNs = int64(idleSteps[i+1])
		}
	}
	if t.Busy > 0 {
		out.Idle[0].Then[facts.UsedAgain] = t.Busy
	}
	for _, k := range t.Idle {
		row := len(idleSteps) - 1
		for ; row > 0 && k.Ns < out.Idle[row].FromNs; row-- {
		}
		out.Idle[row].Then[k.Then]++
		if k.Ns < facts.LongIdleNs {
			continue
		}
		r, seen := out.Ranges[k.Then]
		if !seen {
			r.MinNs = k.Ns
		}
		out.Ranges[k.Then] = IdleRange{r.Count + 1, min(r.MinNs, k.Ns), max(r.MaxNs, k.Ns)}
	}
	return out
}

// thens are the columns of a table.
var thens = []facts.Then{
	facts.UsedAgain, facts.NoReply, facts.ClosedByClient, facts.ClosedByServer, facts.ClosedBetween,
	facts.ClosedByNeither,
}

// head is the head of a column.
func (c IdleCaller) head(t facts.Then) string {
	switch t {
	case facts.UsedAgain:
		return "USED AGAIN"
	case facts.NoReply:
		return "NO REPLY"
	case facts.ClosedByClient:
		return "CLIENT CLOSED"
	case facts.ClosedByServer:
		return strings.ToUpper(c.Peer) + " CLOSED"
	case facts.ClosedBetween:
		return "CLOSED BETWEEN"
	default:
		return "ENDED"
	}
}

// Text writes the tables for a person.
func (d Connections) Text(w io.Writer, s layout.Style) error {
	p := newPage(s)
	if len(d.Callers) == 0 {
		p.Line("no connection was seen: it takes the tap (record as root)")
	}
	for i, c := range d.Callers[:min(len(d.Callers), maxIdleCallers)] {
		if i > 0 {
			p.Gap()
		}
		p.idleCaller(c)
	}
	if more := len(d.Callers) - maxIdleCallers; more > 0 {
		p.Line(p.In(layout.Dim, "and "+format.Count(more, "caller")+" more; --json has all"))
	}
	return p.To(w, "the connections")
}

func (p *page) idleCaller(c IdleCaller) {
	p.Paragraph("", "", p.Text(fmt.Sprintf("%s to %s, %s", c.Caller, c.Node, format.Count(c.Connections,
		"connection"))), layout.Bold)
	columns := slices.DeleteFunc(slices.Clone(thens), func(t facts.Then) bool {
		return !slices.ContainsFunc(c.Idle, func(r IdleRow) bool { return r.Then[t] > 0 })
	})
	line := fmt.Sprintf("%-16s", "IDLE FOR")
	for _, t := range columns {
		line += "  " + c.head(t)
	}
	p.Line(p.In(layout.Dim, line))
	for _, r := range c.Idle {
		if len(r.Then) == 0 {
			continue
		}
		line := fmt.Sprintf("%-16s", r.span())
		for _, t := range columns {
			value := "-"
			if n := r.Then[t]; n > 0 {
				value = fmt.Sprint(n)
			}
			line += fmt.Sprintf("  %*s", len(c.head(t)), value)
		}
		p.Line(line)
	}
	for _, t := range thens {
		if r, ok := c.Ranges[t]; ok {
			p.Paragraph("", "", c.rangeText(t, r), layout.None)
		}
	}
	if !c.UsesSeen {
		p.Paragraph("", "", "What was used again was not seen: record on the host of the client, too.", layout.Dim)
	}
}

// span names a row.
func (r IdleRow) span() string {
	switch {
	case r.ToNs == 0:
		return format.Interval(time.Duration(r.FromNs)) + " or more"
	case r.FromNs == 0:
		return "less than " + format.Interval(time.Duration(r.ToNs))
	}
	return format.Interval(time.Duration(r.FromNs)) + " to " + format.Interval(time.Duration(r.ToNs))
}

// rangeText says what came after idle times of a second or more.
func (c IdleCaller) rangeText(t facts.Then, r IdleRange) string {
	span := format.Brief(r.MinNs)
	if longest := format.Brief(r.MaxNs); longest != span {
		span += " to " + longest
	}
	what := map[facts.Then]string{
		facts.UsedAgain:       "used again and good",
		facts.NoReply:         "used again, and ended without a reply",
		facts.ClosedByClient:  "closed by the client",
		facts.ClosedByServer:  "closed by the " + c.Peer,
		facts.ClosedBetween:   "closed by something between the two ends",
		facts.ClosedByNeither: "ended, closed by neither end",
	}[t]
	return fmt.Sprintf("%s after %s idle: %s", strings.ToUpper(what[:1])+what[1:], span,
		format.Count(r.Count, "time"))
}
