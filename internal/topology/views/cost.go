package views

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/report/layout"
	"slowpath/internal/topology/cost"
	"slowpath/internal/topology/survey"
)

func commandsSent(sent map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		parts = append(parts, fmt.Sprintf("%s %d", strings.ToUpper(strings.ReplaceAll(name, "|", " ")), sent[name]))
	}
	return strings.Join(parts, ", ")
}

// refreshers says who asks for the map.
func (p *page) refreshers(r *survey.Report) {
	if r.Window.Seconds == 0 {
		return
	}
	p.Section("Who refreshes the topology")
	if len(r.Refreshers) == 0 {
		p.Paragraph("  ", "  ", "No connection was seen to ask for the map; those that ask and go on with other "+
			"commands, or close at once, are seen by chance only. The counters below miss none.", layout.None)
	} else {
		p.TabularHeads(layout.Left("LIBRARY OR NAME", 31), layout.Left("COMMAND", 14), layout.Right("CONNECTIONS", 11),
			layout.Right("HOSTS", 5), layout.Right("SEEN", 5), layout.Right("EVERY", 9))
	}
	const most = 10
	for _, x := range r.Refreshers[:min(most, len(r.Refreshers))] {
		p.Tabular(layout.None, layout.Left(whoAsks(x), 31), layout.Left(x.Command, 14),
			layout.Right(fmt.Sprintf("%d %s", x.Count, x.Connections), 11), layout.Right(fmt.Sprint(x.HostCount), 5),
			layout.Right(fmt.Sprint(x.Refreshes), 5), layout.Right(every(x.PeriodNs), 9))
	}
	if n := len(r.Refreshers) - most; n > 0 {
		p.More("    ", n)
	}
	p.habits(r)
}

func whoAsks(x survey.Refresher) string {
	switch {
	case x.Name != "" && !strings.HasPrefix(strings.ToLower(x.Name), strings.ToLower(x.Library)):
		return x.Library + " " + x.Name
	case x.Name != "":
		return x.Name
	case x.Library != "":
		return x.Library
	}
	return "? from " + some(x.Hosts)
}

func every(ns int64) string {
	if ns == 0 {
		return "?"
	}
	return format.Interval(time.Duration(ns))
}

// habits says what the libraries that have connections are known to do.
func (p *page) habits(r *survey.Report) {
	const most = 6
	shown := 0
	for _, l := range r.Libraries {
		if l.Refreshes == "" || shown == most {
			continue
		}
		shown++
		p.Paragraph("  ", "    ", fmt.Sprintf("%s (%s) asks %s", l.Library, format.Count(l.Connections, "connection"),
			l.Refreshes), layout.None)
	}
}

// refreshCost says what refreshes cost the servers now.
func (p *page) refreshCost(r *survey.Report) {
	if r.Window.Seconds == 0 {
		return
	}
	p.Section("What refreshes cost now")
	c := r.Refreshes
	switch {
	case !c.Counted:
		p.Paragraph("  ", "  ", "Not known: INFO commandstats could not be read twice.", layout.None)
		return
	case len(c.Commands) == 0:
		p.Paragraph("  ", "  ", fmt.Sprintf("Nothing: in %.0f s nobody but slowpath asked %s for the map.",
			r.Window.Seconds, format.Count(c.NodesCounted, "node")), layout.None)
		return
	}
	for _, x := range c.Commands {
		likely := ""
		if x.Likely != "" {
			likely = " (by its cost " + x.Likely + ")"
		}
		p.Paragraph("  ", "    ", fmt.Sprintf("%s%s: %s per second and node, %s each, %s of a main thread", x.Command,
			likely, format.Digits(x.PerNode), format.Duration(x.PerCallNs), format.Percent(x.Share)), layout.None)
	}
	most := fmt.Sprintf("most on %s: %s of its main thread", c.ShareMaxNode, format.Percent(c.ShareMax))
	if c.BusyMax > 0 {
		most += fmt.Sprintf(", which uses %s of a core in all", format.Percent(c.BusyMax))
	}
	p.Paragraph("  ", "    ", most, layout.None)
	const short = 0.8 // of the time that commands take on the wall; what is missing the process waited for its CPU
	if c.BusyMax > 0 && c.BusyMax < short*c.ShareMax {
		p.Paragraph("  ", "    ", "commands take more time than the process got of the CPU: its host's CPU is short, "+
			"see slowpath doctor", layout.Yellow)
	}
	if c.Fresh {
		how := "about as many new connections as refreshes: each seems to come on a new one"
		if c.LettuceLike {
			how += ", with an INFO: so asks Lettuce"
		}
		p.Paragraph("  ", "    ", how, layout.None)
	}
}

// whatIf is the table of versions and sizes.
func (p *page) whatIf(r *survey.Report) {
	if r.Model == nil || len(r.Projections) == 0 {
		return
	}
	first := r.Projections[0]
	p.Section(fmt.Sprintf("What %s would cost", asked(first)))
	var sizes []int
	for _, w := range r.Projections {
		if !slices.Contains(sizes, w.Nodes) {
			sizes = append(sizes, w.Nodes)
		}
	}
	const column = 17
	sizes = sizes[:min(len(sizes), max(1, (p.Style.Width-29)/(column+1)))]
	head := []layout.Cell{layout.Left("SERVER", 13), layout.Left("COMMAND", 14)}
	for _, n := range sizes {
		head = append(head, layout.Right(format.Count(n, "node"), column))
	}
	p.TabularHeads(head...)
	var order [][2]string
	rows := map[[2]string]map[int]cost.Projection{}
	for _, w := range r.Projections {
		key := [2]string{w.Server, w.Command}
		if rows[key] == nil {
			rows[key] = map[int]cost.Projection{}
			order = append(order, key)
		}
		rows[key][w.Nodes] = w
	}
	for _, key := range order {
		cells, c := []layout.Cell{layout.Left(key[0], 13), layout.Left(key[1], 14)}, layout.None
		for _, n := range sizes {
			w := rows[key][n]
			cells = append(cells, layout.Right(fmt.Sprintf("%s %7s", format.Duration(w.PerCallNs), load(w.Share)),
				column))
		}
		if key[0] == r.Model.Reference && key[1] == r.Model.Command {
			c = layout.Bold // as the target is
		}
		p.Tabular(c, cells...)
	}
	m := r.Model
	p.Paragraph("  ", "  ", fmt.Sprintf("Time of one call, and the share of each node's main thread. %s here: %s. "+
		"The law of %s, fitted to %s of %s calls on this server (%s nodes, %s): %.2f × the machine of the reference. "+
		"Writing the reply (%s bytes) comes on top.",
		m.Command, m.Formula, m.Reference, format.Duration(m.MeasuredNs), format.Thousands(m.Calls),
		format.Thousands(m.Size.Nodes), format.Count(m.Size.Ranges, "range"), m.Scale, format.Thousands(m.Bytes)),
		layout.Dim)
}

// asked is who asks how often.
func asked(w cost.Projection) string {
	nodes := "one node"
	if w.AskAll {
		nodes = "all nodes"
	}
	return fmt.Sprintf("%s, each asking %s every %s,", format.Count(w.Clients, "client"), nodes, every(w.PeriodNs))
}

// load is a share of a thread, which may be more than there is.
func load(share float64) string {
	if share > 1 {
		return ">100 %"
	}
	return format.Percent(share)
}

// options is the table of what each option leaves of the cost.
func (p *page) options(list []cost.Option) {
	if len(list) == 0 {
		return
	}
	p.Section("Options")
	p.TabularHeads(layout.Left("", 44), layout.Right("MASTER", 9), layout.Right("REPLICA", 9),
		layout.Right("SAVES", 8))
	for _, w := range list {
		replica, saves := "-", format.Percent(w.Saves)
		if w.Replicas != nil {
			replica = load(*w.Replicas)
		}
		if !w.Possible || w.ID == "now" {
			saves = "-"
		}
		c := layout.None
		if !w.Possible {
			c = layout.Dim
		}
		row := []layout.Cell{
			layout.Left(w.Title, 44), layout.Right(load(w.Masters), 9), layout.Right(replica, 9),
			layout.Right(saves, 8),
		}
		texts := []string{w.How, w.Note}
		if room := p.Style.Width - 76; room >= 60 && layout.Width(w.How) <= room {
			row, texts = append(row, layout.Left(" "+w.How, room)), texts[1:]
		}
		p.Tabular(c, row...)
		for _, text := range texts {
			if text != "" {
				p.Paragraph("    ", "    ", text, layout.Dim)
			}
		}
	}
}
