package report

import (
	"strconv"
	"strings"

	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

type lostPage struct {
	Title string
	Heads []string
	Rows  [][]string
	Notes []string
}

// lostView is the table of the lost time, nil where the bars say the same.
func lostView(d verdict.Diagnosis) *lostPage {
	const width = 160 // columns of a text with as many states
	if !hasLostTable(d) {
		return nil
	}
	t := newPage(layout.Style{Width: width, Unicode: true}).lostTable(d.LostTime)
	v := &lostPage{Title: lostTitle, Rows: t.rows[heads:], Notes: lostNotes(d.LostTime)}
	for i := range t.widths {
		v.Heads = append(v.Heads, strings.TrimSpace(t.rows[0][i]+" "+t.rows[1][i]))
	}
	return v
}

type callerPage struct{ Name, Library, Calls, Slow, Lost string }

// maxCallersShown is how many callers a page lists.
const maxCallersShown = 15

func callersView(all []verdict.Caller) (out []callerPage, note string) {
	for _, c := range all[:min(len(all), maxCallersShown)] {
		p := callerPage{
			Name: plain(caller.HostText(c.Name, c.HostName)), Library: plain(c.Library),
			Calls: format.Thousands(c.Calls), Slow: format.Thousands(c.SlowCalls), Lost: format.Duration(c.LostNs),
		}
		if c.PID > 0 {
			p.Name += "[" + strconv.Itoa(c.PID) + "]"
		}
		if c.Processes > 1 {
			p.Name += ", " + format.Thousands(c.Processes) + " processes"
		}
		if p.Library == "" {
			p.Library = "not known"
		}
		out = append(out, p)
	}
	notes := []string{"Calls are those that were seen on the caller's connections. Slow calls are those that were " +
		"recorded one by one, and their lost time is what they took beyond the usual."}
	if more := len(all) - len(out); more > 0 {
		notes = append(notes, "There are "+format.Count(more, "more caller")+" that lost less.")
	}
	return out, strings.Join(notes, " ")
}

type unseenPage struct {
	Said   string
	Enable []stepPage
}

func unseenView(d verdict.Diagnosis) (out []unseenPage) {
	for _, b := range spotsOf(d) {
		said := whatOf(b)
		if b.Why != "" {
			said += " — " + b.Why
		}
		v := unseenPage{Said: plain(said)}
		if _, _, grants := recording.Grant(b.Enable); grants {
			v.Enable = []stepPage{{Text: plain(b.Enable), Command: true}}
		} else if b.Enable != "" {
			v.Said += "; to see it: " + plain(b.Enable)
		}
		out = append(out, v)
	}
	return out
}

type onCPUPage struct {
	Said      string
	Functions *factsPage
}

func onCPUView(all []verdict.OnCPU) (out []onCPUPage) {
	for _, o := range all {
		said, heading := onCPUSaid(o)
		v := onCPUPage{Said: plain(said)}
		if len(o.Functions) > 0 {
			v.Functions = &factsPage{Title: heading, Open: o.Differs}
			for _, f := range o.Functions {
				v.Functions.Facts = append(v.Functions.Facts, plain(functionSaid(f)))
			}
		}
		out = append(out, v)
	}
	return out
}
