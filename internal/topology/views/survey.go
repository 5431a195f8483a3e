package views

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/report/layout"
	"slowpath/internal/topology/survey"
)

// Topology writes the survey of a cluster for a person: what is wrong, the map, where views differ, who refreshes it,
// what that costs, and the options. With all it lists every shard.
func Topology(w io.Writer, r *survey.Report, all bool, s layout.Style) error {
	p := newPage(s)
	p.topologyHead(r)
	p.topologyFindings(r.Findings)
	p.shards(r.Shards, all)
	p.disagreements(r)
	p.refreshers(r)
	p.refreshCost(r)
	p.whatIf(r)
	p.options(r.Options)
	p.topologyUnseen(r.BlindSpots)
	p.topologyCost(r)
	return p.To(w, "the topology")
}

// TopologyJSON writes the document slowpath.topology/v1.
func TopologyJSON(w io.Writer, r *survey.Report) error { return layout.JSON(w, "the topology", r) }

func (p *page) topologyHead(r *survey.Report) {
	m := r.Map
	verdict := "Nothing is wrong with this cluster's map."
	if notAsked(r) {
		verdict = fmt.Sprintf("Nothing is wrong with this cluster's map as %d of %s have it. The others were not "+
			"asked.", m.Answered, format.Count(m.Size.Nodes, "node"))
	}
	if n := len(r.Findings); n > 0 {
		verdict = fmt.Sprintf("%s: %s.", format.Count(n, "finding"), strings.Join(ids(r.Findings), ", "))
	}
	p.Paragraph("", "", verdict, layout.Bold)
	facts := []string{r.Target.Address}
	if r.Target.Server != "" {
		facts = append(facts, r.Target.Server)
	}
	p.Facts("", append(facts, r.Window.Start.Format(time.DateTime)+" UTC"), layout.Dim)
	slots := "all 16384 slots"
	if m.SlotsCovered < 16384 {
		slots = fmt.Sprintf("%d of 16384 slots", m.SlotsCovered)
	}
	shape := []string{
		format.Count(m.Size.Nodes, "node"), format.Count(m.Size.Masters, "master"),
		format.Count(m.Replicas, "replica"), slots, format.Count(m.Size.Ranges, "range") + perMaster(m),
		fmt.Sprintf("epoch %d", m.CurrentEpoch),
	}
	p.Facts("", shape, layout.None)
	views := fmt.Sprintf("%d of %s answered", m.Answered, format.Count(len(r.Views), "node"))
	if m.Answered == m.HeldBy {
		views += ", with the same map"
	} else {
		views += fmt.Sprintf(", %d with the same map", m.HeldBy)
	}
	links := []string{views, format.Count(m.LinksDown, "bus link") + " down"}
	if m.LinkBufferBytes > 0 {
		links = append(links, fmt.Sprintf("up to %s bytes wait on a bus link", format.Thousands(m.LinkBufferBytes)))
	}
	p.Facts("", links, layout.None)
}

// notAsked reports whether nodes were left out, since the password would be sent there.
func notAsked(r *survey.Report) bool {
	return slices.ContainsFunc(r.Shards, func(s survey.Shard) bool {
		return slices.ContainsFunc(append([]survey.Member{s.Master}, s.Replicas...), func(m survey.Member) bool {
			return m.State == "not-asked"
		})
	})
}

func perMaster(m survey.MapSummary) string {
	if m.RangesMin == m.RangesMax {
		return fmt.Sprintf(" (%d per master)", m.RangesMax)
	}
	return fmt.Sprintf(" (per master %d to %d, median %d)", m.RangesMin, m.RangesMax, m.RangesMedian)
}

func ids(fs []survey.Finding) (out []string) {
	for _, f := range fs {
		out = append(out, f.ID)
	}
	return out
}

func (p *page) topologyFindings(fs []survey.Finding) {
	for i, f := range fs {
		number := fmt.Sprintf("%d. ", i+1)
		if i == 0 {
			p.Gap()
		}
		p.Paragraph(number, layout.Pad("", len(number)), f.Text, layout.Alarm)
		for _, fix := range f.Fix {
			p.Paragraph("   - ", "     ", fix, layout.None)
		}
	}
}

// maxShards are listed unless all are asked for.
const maxShards = 12

// shards lists masters with their replicas: those that are not well first where there is no room for all.
func (p *page) shards(list []survey.Shard, all bool) {
	p.Section("The map")
	shown := list
	if !all && len(list) > maxShards {
		shown = interesting(list)
	}
	// With room the first ranges are shown after their number.
	wide := p.Style.Width >= 120
	cells := []layout.Cell{
		layout.Left("MASTER", 22),
		layout.Left("STATE", 12),
		layout.Right("SLOTS", 6),
		layout.Right("RANGES", 6),
		layout.Right("EPOCH", 6),
		layout.Left("REPLICAS", 22),
	}
	if wide {
		cells = append(cells, layout.Left("SLOTS FROM-TO", 40))
	}
	p.TabularHeads(cells...)
	for _, s := range shown {
		c := layout.None
		if s.Master.State != "ok" {
			c = layout.Red
		}
		cells := []layout.Cell{
			layout.Left(s.Master.Address, 22),
			layout.Left(s.Master.State, 12),
			layout.Right(fmt.Sprint(s.Slots), 6),
			layout.Right(fmt.Sprint(s.RangesOf), 6),
			layout.Right(fmt.Sprint(s.Epoch), 6),
			layout.Left(p.replicas(s), 22),
		}
		if wide {
			text := strings.Join(s.Ranges, " ")
			if len(s.Ranges) < s.RangesOf {
				text += " …"
			}
			cells = append(cells, layout.Left(text, p.Style.Width-81))
		}
		p.Tabular(c, cells...)
	}
	if n := len(list) - len(shown); n > 0 {
		p.Line(p.In(layout.Dim, fmt.Sprintf("and %s (--all lists them)", format.Count(n, "more shard"))))
	}
}

// interesting are the shards with something to see, then the first.
func interesting(list []survey.Shard) (out []survey.Shard) {
	taken := map[int]bool{}
	for pass := range 2 {
		for i, s := range list {
			if len(out) < maxShards && !taken[i] && (pass == 1 || unwell(s)) {
				out = append(out, s)
				taken[i] = true
			}
		}
	}
	return out
}

func unwell(s survey.Shard) bool {
	for _, m := range append([]survey.Member{s.Master}, s.Replicas...) {
		if m.State != "ok" && m.State != "unreachable" && m.State != "not-asked" {
			return true
		}
	}
	return false
}

// replicas sums up those of a shard: how many are well, and how far the last of them is behind.
func (p *page) replicas(s survey.Shard) string {
	if len(s.Replicas) == 0 {
		return "none"
	}
	states := map[string]int{}
	behind := int64(-1)
	for _, m := range s.Replicas {
		states[m.State]++
		if m.LagBytes != nil {
			behind = max(behind, *m.LagBytes)
		}
	}
	var parts []string
	for _, state := range []string{
		"ok", "syncing", "loading", "link-down", "suspected", "failed", "unreachable", "not-asked",
	} {
		if n := states[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if behind > 0 {
		parts = append(parts, fmt.Sprintf("-%s B", format.Thousands(behind)))
	}
	return strings.Join(parts, ", ")
}

func (p *page) disagreements(r *survey.Report) {
	if len(r.Disagreements) == 0 {
		return
	}
	p.Section("Where the nodes do not agree")
	const most = 12
	for _, d := range r.Disagreements[:min(most, len(r.Disagreements))] {
		p.Paragraph("  - ", "    ", fmt.Sprintf("%s [%s]", d.What, some(d.By)), layout.None)
	}
	if n := len(r.Disagreements) - most; n > 0 {
		p.More("    ", n)
	}
}

// some names the first of a list.
func some(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

func (p *page) topologyUnseen(spots []survey.BlindSpot) {
	if len(spots) == 0 {
		return
	}
	p.Section("What could not be seen")
	for _, b := range spots[:min(layout.MaxSpots, len(spots))] {
		p.Paragraph("  - ", "    ", fmt.Sprintf("%s — %s; enable: %s", b.What, b.Why, b.Enable), layout.None)
	}
	if n := len(spots) - layout.MaxSpots; n > 0 {
		p.More("    ", n)
	}
}

func (p *page) topologyCost(r *survey.Report) {
	p.Section("Cost of this survey")
	all := 0
	for _, n := range r.Cost.Commands {
		all += n
	}
	p.Paragraph("  ", "  ", fmt.Sprintf("%s in all, at most %d to one node: %s; %s of server time, of one node at "+
		"most %s", format.Count(all, "command"), r.Cost.PerNode, commandsSent(r.Cost.Commands),
		format.Duration(r.Cost.ServerTimeNs), format.Duration(r.Cost.MaxNodeNs)), layout.Dim)
}
