package views

import (
	"fmt"
	"io"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/report/layout"
	"slowpath/internal/topology/simulate"
)

// Simulation writes what refresh policies lead to: how long clients have an old map, and what the servers do for it.
func Simulation(w io.Writer, r *simulate.Report, s layout.Style) error {
	p := newPage(s)
	p.simulationHead(r)
	p.simulationTable(r)
	p.simulationNotes(r)
	return p.To(w, "the simulation")
}

// SimulationJSON writes the document slowpath.topology-simulation/v1.
func SimulationJSON(w io.Writer, r *simulate.Report) error {
	return layout.JSON(w, "the simulation", r)
}

func (p *page) simulationHead(r *simulate.Report) {
	s := &r.Setup
	p.Paragraph("", "", "Simulated: "+changeText(&s.Change)+".", layout.Bold)
	from := s.Server
	if r.Target != "" {
		from = r.Target + ", " + from
	}
	p.Facts("", []string{
		from, format.Count(s.Size.Nodes, "node"), format.Count(s.Masters, "master"),
		format.Count(s.Size.Ranges, "range"),
	}, layout.None)
	p.Facts("", []string{
		format.Count(s.Clients, "client"), fmt.Sprintf("%s calls/s each", format.Rounded(s.Calls)),
		fmt.Sprintf("to %s", format.Count(s.InUse, "slot")), fmt.Sprintf("round trip %s", format.Brief(s.RTT)),
		fmt.Sprintf("%s in all, seed %d", format.Interval(s.Duration), s.Seed),
	}, layout.None)
}

func changeText(c *simulate.Change) string {
	at := fmt.Sprintf(" after %s", format.Interval(c.At))
	switch c.Kind {
	case simulate.Slots:
		text := fmt.Sprintf("%s, %s per second,%s", moves(c.Slots), format.Rounded(c.PerSecond), at)
		if c.NewNode {
			text += ", to a new node"
		}
		return text
	case simulate.Failover:
		return fmt.Sprintf("a master ends%s, its replica takes over %s later", at, format.Interval(c.Promotion))
	case simulate.Hang:
		return fmt.Sprintf("a master hangs%s without closing a connection, its replica takes over %s later", at,
			format.Interval(c.Promotion))
	case simulate.Rejoin:
		return fmt.Sprintf("a master ends%s, its replica takes over %s later; after %s it is back as a replica and "+
			"loads for %s", at, format.Interval(c.Promotion), format.Interval(c.Back), format.Interval(c.Loading))
	}
	return "nothing changes"
}

func moves(n int) string {
	if n == 1 {
		return "1 slot moves"
	}
	return format.Thousands(n) + " slots move"
}

// policyWidth is that of the longest known policy.
const policyWidth = 18

// simulationTable has a row per policy, and a second one where it has something to say that has no column.
func (p *page) simulationTable(r *simulate.Report) {
	p.Section("What each policy leads to")
	p.TabularHeads(layout.Left("POLICY", policyWidth), layout.Right("OLD: 50 %", 9), layout.Right("LAST", 8),
		layout.Right("MOVED/s", 8), layout.Right("CLUSTER/s", 9), layout.Right("MASTER", 7), layout.Right("REPLICA", 7),
		layout.Right("MOST", 6))
	for _, x := range r.Results {
		name := x.Policy.Name
		if layout.Width(name) > policyWidth {
			p.Piece("", name, layout.None)
			name = ""
		}
		p.Tabular(layout.None, layout.Left(name, policyWidth), layout.Right(staleText(x.Stale, x.Stale.MedianNs, 0.5),
			9),
			layout.Right(staleText(x.Stale, x.Stale.LastNs, 0), 8), layout.Right(format.Rounded(x.Moved.PerSecond), 8),
			layout.Right(format.Rounded(x.Commands.PerSecond), 9), layout.Right(format.Percent(x.CPUMasters), 7),
			layout.Right(format.Percent(x.CPUReplicas), 7), layout.Right(format.Percent(x.CPUMost), 6))
		for _, text := range simulationDetails(&x) {
			p.Paragraph("    ", "    ", text, layout.Dim)
		}
	}
}

// staleText is a time; where more than a share of clients and changes were not known at the end, a lower bound.
func staleText(s simulate.Stale, ns int64, above float64) string {
	switch {
	case s.LastNs == 0:
		return "-"
	case s.Never > above:
		return "> " + format.Brief(ns)
	}
	return format.Brief(time.Duration(ns))
}

func simulationDetails(x *simulate.Result) (out []string) {
	add := func(text string, n int) {
		if n > 0 {
			out = append(out, text+": "+format.Thousands(n))
		}
	}
	if x.Stale.Never > 0 {
		out = append(out, "clients and changes not known at the end: "+format.Percent(x.Stale.Never))
	}
	add("refreshes while the change went on, whose map was old again", x.Early)
	add("changes that a client knew, until an older view replaced its map", x.Backward)
	add("calls to a node that is down, or to a slot that has none", x.Failed.Count)
	add("reads that LOADING answers, if clients read from replicas", x.Loading.Count)
	add("calls with ASK", x.Asks.Count)
	add("commands to one node in a second, at most", int(x.NodeMost))
	if x.SlowestNs >= int64(100*time.Millisecond) {
		out = append(out, "the longest refresh: "+format.Brief(x.SlowestNs))
	}
	return out
}

func (p *page) simulationNotes(r *simulate.Report) {
	p.Paragraph("  ", "  ", "OLD: from a change until a client has it in its map: half of the clients and changes, "+
		"and the last. MOVED/s: mean since the first change. CLUSTER/s: commands to all nodes, mean. MASTER, REPLICA: "+
		"mean share of a main thread for these commands; MOST: of the node and second where it is most.",
		layout.Dim)
	costs := "as on the machine of the reference"
	if r.Costs == simulate.Measured {
		costs = "as measured on the target"
	}
	text := "One call takes"
	for _, c := range []string{"nodes", "slots", "shards"} {
		for name, d := range r.Setup.Costs {
			if string(name) == c {
				text += fmt.Sprintf(" %s %s,", name, format.Duration(d))
			}
		}
	}
	p.Paragraph("  ", "  ", text+" "+costs+". Not in it: connections, INFO of Lettuce, published messages.", layout.Dim)
}
