package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
	"slowpath/internal/trace"
)

// Columns of a call's block: the time of day, or the bar below it, and what is next to it.
const (
	clockWidth   = 13 // 15:04:05.000Z
	wideScreen   = 120
	wideBar      = 40 // from wideScreen columns on
	opWidth      = 8
	maxSpendings = 3
	minSpending  = 0.05 // of a call; what took less is not named, except the largest
	bigReply     = 64 << 10
	ownWork      = "its own work" // culprit of an event loop that ran timers, expiry and the like
)

// CallStyle is how calls are shown.
type CallStyle struct {
	layout.Style
	SlowNs int64 // of a call below there is only the first line
	Nodes  bool  // several servers are watched: say which also where it takes a line more
}

// Calls writes a call, or a group of calls that waited for the same, as a block of a few lines: when, what, how long
// and whose; then where the time went, and who was to blame.
func Calls(w io.Writer, g trace.Group, s CallStyle) error {
	p := newPage(s.Style)
	p.call(g.Worst, s)
	if g.Others > 0 {
		p.others(g)
	}
	return p.To(w, "a call")
}

func (p *page) call(c trace.Call, s CallStyle) {
	lead := c.Time.UTC().Format("15:04:05.000Z") + "  "
	op := layout.Pad(p.Shorten(p.Text(cmp.Or(c.Op, "?")), 3*opWidth), opWidth)
	duration := op + " " + p.length(c.Ns) + "  "
	room := p.Style.Width - layout.Width(lead+duration)
	who := p.caller(c, s.Nodes, room)
	p.Line(p.In(layout.Dim, lead) + p.In(layout.Bold, duration) + p.Shorten(who[0], room))
	for _, rest := range who[1:] {
		p.Line(layout.Pad("", layout.Width(lead)) + p.Shorten(rest, p.Style.Width-layout.Width(lead)))
	}
	if c.Ns >= s.SlowNs {
		p.wayOf(c)
	}
}

// caller says who called whom, and what was out of the ordinary, as lines of which the first has little room. Where
// there is one server only, it is left out rather than to take a line.
func (p *page) caller(c trace.Call, nodes bool, room int) []string {
	who := strings.TrimSpace(p.Text(c.Process) + " " + p.Text(c.Client))
	to := " " + p.Text("→") + " " + p.Text(c.Node)
	var more []string
	if c.ReplyBytes >= bigReply {
		more = append(more, "reply "+format.Bytes(c.ReplyBytes))
	}
	if c.RequestBytes >= bigReply {
		more = append(more, "request "+format.Bytes(c.RequestBytes))
	}
	if c.Error != "" {
		more = append(more, p.Text(c.Error))
	}
	lines := []string{who}
	if nodes || layout.Width(who+to) <= room {
		lines = p.append(lines, to, room)
	}
	for _, m := range more {
		lines = p.append(lines, " "+p.Text("·")+" "+m, room)
	}
	return lines
}

// append puts a part behind the last line, or below where there is no room for it.
func (p *page) append(lines []string, part string, room int) []string {
	n := len(lines) - 1
	if layout.Width(lines[n]+part) <= room {
		lines[n] += part
		return lines
	}
	return append(lines, strings.TrimPrefix(strings.TrimSpace(part), p.Text("·")+" "))
}

// wayOf is the bar of a call and what took most of it.
func (p *page) wayOf(c trace.Call) {
	width := p.stripWidth()
	room := p.Style.Width - width - 2
	var lines []string
	row := ""
	sep := " " + p.Text("·") + " "
	for _, s := range spendings(c) {
		text := p.Text(s.say())
		if row != "" && layout.Width(row)+layout.Width(sep)+layout.Width(text) <= room {
			row += sep + text
			continue
		}
		if row != "" {
			lines = append(lines, row)
		}
		wrapped := layout.Wrap(text, room)
		lines = append(lines, wrapped[:len(wrapped)-1]...)
		row = wrapped[len(wrapped)-1]
	}
	lines = append(lines, row)
	for i, l := range lines {
		lead := layout.Pad("", width)
		if i == 0 {
			lead = p.strip(c, width)
		}
		p.Line(lead + "  " + l)
	}
}

func (p *page) stripWidth() int {
	if p.Style.Width >= wideScreen {
		return wideBar
	}
	return clockWidth
}

// cells draw the actors apart where there is no colour.
var cells = map[string][2]string{"server": {"█", "#"}, "network": {"▒", "~"}, "client": {"▓", "="}}

// strip is the whole call as a row of cells, each of which shows the actor that had most of its time.
func (p *page) strip(c trace.Call, width int) string {
	total := max(c.Ns, 1)
	b, i := "", 0
	for n := range width {
		from, to := total*int64(n)/int64(width), total*int64(n+1)/int64(width)
		for i < len(c.Segments)-1 && c.Segments[i].ToNs <= from {
			i++
		}
		actor, most := "", int64(0)
		for _, s := range c.Segments[min(i, len(c.Segments)):] {
			if s.FromNs >= to {
				break
			}
			if ns := min(s.ToNs, to) - max(s.FromNs, from); ns > most {
				actor, most = s.Actor, ns
			}
		}
		cell, ok := cells[actor]
		if !ok {
			cell = [2]string{"░", "."}
		}
		if p.Style.Unicode {
			b += p.In(actorPaint(actor), cell[0])
		} else {
			b += p.In(actorPaint(actor), cell[1])
		}
	}
	return strings.ReplaceAll(b, "\x1b[0m\x1b[", "\x1b[")
}

// spending is the time of a call in one state because of one thing.
type spending struct {
	actor, state, culprit string
	ns                    int64
}

// spendings are those that are worth a word, the largest first.
func spendings(c trace.Call) []spending {
	var list []spending
	for _, s := range c.Segments {
		i := slices.IndexFunc(list, func(o spending) bool {
			return o.actor == s.Actor && o.state == s.State &&
				o.culprit == s.Culprit
		})
		if i < 0 {
			i = len(list)
			list = append(list, spending{actor: s.Actor, state: s.State, culprit: s.Culprit})
		}
		list[i].ns += s.Ns()
	}
	if len(list) == 0 {
		list = []spending{{state: unexplained, ns: c.Ns}}
	}
	slices.SortStableFunc(list, func(a, b spending) int { return cmp.Compare(b.ns, a.ns) })
	n := 1
	for n < min(len(list), maxSpendings) && float64(list[n].ns) >= minSpending*float64(c.Ns) {
		n++
	}
	return list[:n]
}

// say puts a spending into words.
func (s spending) say() string {
	d := format.Duration(s.ns)
	if s.actor == recording.Server && s.state == recording.Busy {
		switch {
		case s.culprit == "":
			return "waited " + d + " while the server served others"
		case s.culprit == ownWork:
			return "waited " + d + " while the server did its own work"
		case strings.HasPrefix(s.culprit, "sending "):
			return "waited " + d + " while the server was " + s.culprit
		}
		return "waited " + d + " for " + s.culprit
	}
	if s.actor == recording.Nobody {
		s.actor = ""
	}
	text := stateName(s.actor, s.state) + " " + d
	switch {
	case s.culprit == "":
		return text
	case s.state == recording.RunQueue:
		return text + " behind " + s.culprit
	case s.state == recording.Blocked:
		return text + " in " + s.culprit
	}
	return text + ", " + s.culprit
}

// others says how many calls more waited for the same.
func (p *page) others(g trace.Group) {
	ops := slices.SortedFunc(maps.Keys(g.ByCommand), func(a, b string) int {
		return cmp.Or(cmp.Compare(g.ByCommand[b], g.ByCommand[a]), cmp.Compare(a, b))
	})
	const most = 4
	var named []string
	for _, op := range ops[:min(len(ops), most)] {
		named = append(named, fmt.Sprintf("%s %d", cmp.Or(op, "?"), g.ByCommand[op]))
	}
	if len(ops) > most {
		named = append(named, "…")
	}
	text := fmt.Sprintf("and %s more like it, the shortest %s (%s)", format.Count(g.Others, "call"),
		format.Duration(g.LeastNs), strings.Join(named, ", "))
	lead := layout.Pad("", p.stripWidth()+2)
	p.Paragraph(lead, lead, text, layout.Dim)
}
