package web

import (
	"fmt"
	"net/http"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/wire/cluster"
)

type topologyView struct {
	Title       string
	Problems    []string
	Strip       []stripPart
	Nodes       []nodeRow
	Note        string
	Callers     []callerRow
	CallersNote string
}

// stripPart is a range of slots in the drawing, in slots.
type stripPart struct {
	X, W  int
	Shade int
	Said  string
}

type nodeRow struct {
	Class, Address, Note, Role, Slots, Calls, Slow, Failed, P50, P99 string
	Replica                                                          bool
	Shade                                                            int
}

type callerRow struct{ Name, Calls, Slow, Lost string }

const (
	shades       = 8 // that tell primaries apart
	maxStrip     = 500
	shownRanges  = 4
	noNumber     = "–"
	plainPrimary = "primary"
)

// livePage answers GET /live.
func (s *Server) livePage(w http.ResponseWriter, r *http.Request) error {
	return s.page(w, r, "live", "slowpath: live", nil)
}

// topologyPage answers GET /topology.
func (s *Server) topologyPage(w http.ResponseWriter, r *http.Request) error {
	m := s.mapNow()
	v := topologyView{Title: "What is watched", CallersNote: fmt.Sprintf(
		"Calls since the watch began; slow calls, and what they lost beyond %s, in the last %d minutes.",
		format.Brief(s.o.View.Threshold()), m.CallersOf/secondsPerMinute)}
	if m.Server != "" {
		v.Title = m.Server
	}
	v.Note = "Calls are those of users in the last minute."
	if m.AsSeenBy != "" {
		v.Title = fmt.Sprintf("A cluster of %s", count(len(m.Nodes), "node"))
		v.Note += " The map is that of " + m.AsSeenBy + "."
	}
	if len(m.Uncovered) > 0 {
		v.Problems = append(v.Problems, "No node serves the slots "+strings.Join(m.Uncovered, ", "))
	}
	shadeOf := map[string]int{}
	for _, n := range m.Nodes {
		if n.Role == plainPrimary && n.Slots > 0 {
			shadeOf[n.Address] = len(shadeOf)%shades + 1
			v.Strip = append(v.Strip, strip(n, shadeOf[n.Address])...)
		}
	}
	v.Strip = listed(v.Strip, maxStrip)
	for _, n := range inOrder(m.Nodes) {
		v.Nodes = append(v.Nodes, nodeRowOf(n, shadeOf))
		if n.State == "failed" || n.State == "suspected" {
			v.Problems = append(v.Problems, n.Address+" is "+n.State)
		}
	}
	for _, c := range m.Callers {
		v.Callers = append(v.Callers, callerRow{
			c.Name, format.Thousands(c.Calls), format.Thousands(c.Slow), format.Duration(c.LostNs),
		})
	}
	return s.page(w, r, "topology", "slowpath: topology", v)
}

// inOrder has each replica below its primary.
func inOrder(nodes []MapNode) (out []MapNode) {
	taken := map[string]bool{}
	for _, n := range nodes {
		if n.Role == "replica" {
			continue
		}
		out = append(out, n)
		taken[n.Address] = true
		for _, of := range nodes {
			if of.Role == "replica" && of.Primary == n.Address && !taken[of.Address] {
				out = append(out, of)
				taken[of.Address] = true
			}
		}
	}
	for _, n := range nodes {
		if !taken[n.Address] {
			out = append(out, n)
		}
	}
	return out
}

func strip(n MapNode, shade int) (out []stripPart) {
	for _, text := range n.Ranges {
		var from, to int
		switch k, _ := fmt.Sscanf(text, "%d-%d", &from, &to); k {
		case 0:
			continue
		case 1:
			to = from
		}
		out = append(out, stripPart{from, to - from + 1, shade, fmt.Sprintf("%s: slots %s", n.Address, text)})
	}
	return out
}

func nodeRowOf(n MapNode, shadeOf map[string]int) nodeRow {
	row := nodeRow{
		Address: n.Address, Role: n.Role, Replica: n.Role == "replica", Shade: shadeOf[n.Address],
		Calls: noNumber, Slow: noNumber, Failed: noNumber, P50: noNumber, P99: noNumber, Slots: slotsOf(n),
	}
	if n.Primary != "" {
		row.Role += " of " + n.Primary
	}
	if n.State != "" && n.State != "ok" {
		row.Role, row.Class = row.Role+", "+n.State, "failed"
	}
	if !n.Watched {
		row.Note = "not watched"
		return row
	}
	row.Calls = format.Rounded(float64(n.Calls) / mapSeconds)
	row.Slow, row.Failed = format.Thousands(n.Slow), format.Thousands(n.Failed)
	if n.Calls > 0 {
		row.P50, row.P99 = format.Duration(n.P50Ns), format.Duration(n.P99Ns)
	}
	if n.Slow > 0 {
		row.Class = strings.TrimSpace(row.Class + " hasslow")
	}
	return row
}

func slotsOf(n MapNode) string {
	if n.Slots == 0 {
		return noNumber
	}
	text := fmt.Sprintf("%s (%s)", format.Thousands(n.Slots), strings.Join(n.Ranges[:min(len(n.Ranges), shownRanges)],
		", "))
	if len(n.Ranges) > shownRanges {
		text = fmt.Sprintf("%s in %d ranges", format.Thousands(n.Slots), len(n.Ranges))
	}
	if n.Slots == cluster.SlotCount {
		text = "all"
	}
	if n.Moving > 0 {
		text += ", " + count(n.Moving, "slot") + " moving"
	}
	return text
}
