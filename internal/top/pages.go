package top

import (
	"bytes"
	"time"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
)

// pageRoom is how many lines a page has: all but the first and the last of the screen.
func (m Model) pageRoom() int { return max(1, max(m.height, LeastHeight)-2) }

// pageLines are all lines of the page that is open.
func (m Model) pageLines() []string {
	s := newScreen(m.style, m.width)
	switch m.page {
	case pageHelp:
		return m.helpLines(s)
	case pageCall:
		return callLines(s, m.opened)
	case pageVerdict:
		return m.wholeVerdict(s)
	}
	return nil
}

// callLines are a slow call as a waterfall.
func callLines(s *screen, c Call) []string {
	var b bytes.Buffer
	_ = report.Waterfall(&b, worstOf(c), s.p.Style) // a buffer takes all
	head := "A slow call"
	if c.Others > 0 {
		head = "The slowest of " + format.Count(c.Others+1, "call") + " that waited at one time for the same"
	}
	lines := append([]string{s.p.In(layout.Bold, head), ""}, linesOf(b.String())...)
	if len(c.Segments) == 0 {
		lines = append(lines, "  where its time went was not seen")
	}
	if c.Row.Error != "" {
		lines = append(lines, "", s.p.Text("error: "+c.Row.Error))
	}
	sizes := "request " + format.Bytes(c.Row.RequestBytes) + ", reply " + format.Bytes(c.Row.ReplyBytes)
	return append(lines, "", s.p.In(layout.Dim, sizes+"; left and right: the calls after and before it"))
}

// worstOf is a slow call as a report has it.
func worstOf(c Call) verdict.Worst {
	w := verdict.Worst{
		Time: timeOf(c.Row.IntendedNs), Source: c.Row.Source, Conn: c.Row.Conn, Client: c.Row.Client, Op: c.Row.Op,
		Node: c.Row.Node, Ns: c.Row.EndNs - c.Row.IntendedNs, OwnDelayNs: c.OwnDelayNs,
	}
	if c.Row.Source == ownSource {
		w.Client = "slowpath"
	}
	for _, p := range c.Segments {
		w.Segments = append(w.Segments, verdict.Part{
			Actor: p.Actor, State: p.State, Culprit: p.Culprit, FromNs: p.FromNs - c.Row.IntendedNs,
			ToNs: p.ToNs - c.Row.IntendedNs,
		})
	}
	return w
}

// wholeVerdict is the verdict as doctor prints it.
func (m Model) wholeVerdict(s *screen) []string {
	v := m.frame.Verdict
	if v == nil || v.Failed != "" {
		return m.verdictLines(s, s.p.Style.Width, verdictRoom(m.height))
	}
	head := "Verdict of the last " + format.Interval(v.Of.Round(time.Second)) + ", " +
		format.Interval(m.age(*v).Round(time.Second)) + " old, judged in " + s.p.Text(format.Duration(v.Took)) +
		" of CPU time; r judges again"
	lines := block(layout.Wrap(head, s.p.Style.Width), s.p.Style.Width, 2)
	var b bytes.Buffer
	_ = report.Text(&b, v.Diagnosis, s.p.Style) // a buffer takes all
	return append(lines, whole(linesOf(b.String()), s.p.Style.Width)...)
}

// helpKeys are the keys with what they do.
var helpKeys = [][2]string{
	{"1 2 3 4, tab", "choose a list: slow calls, callers, commands, waits"},
	{"arrows, page up/down", "move in the list or the page"},
	{"enter", "a slow call: where its time went; a caller or a command: only its calls"},
	{"5, v", "the whole verdict of the last seconds; r judges them again now"},
	{"/", "only commands and callers that have a text in their names; esc shows all"},
	{"space, f", "freeze the screen, and go on; the watch goes on meanwhile"},
	{"s", "save what was seen so far as a recording, for: slowpath doctor FILE"},
	{"esc", "back"},
	{"q, Ctrl-C", "end the watch, and print the verdict of all of it"},
}

// helpWords explain the words on the screen.
var helpWords = [][2]string{
	{"your calls", "those of the server's clients, seen in the kernel; slowpath's own are a few per second, at " +
		"regular times, so that a larger part of them falls into a stall"},
	{"slow", "a call that took the slow threshold or more (--slow)"},
	{"failed", "error replies other than redirects, and calls without a reply"},
	{"lost", "of slow calls the time above the slow threshold"},
	{"waits", "where the time of slow calls went, and for which command, fork or CPU quota they waited"},
	{"verdict", "of the last seconds, renewed in the background while calls are slow, at most every 5 s; judging " +
		"takes at most 0.4 % of a core over time, so that a verdict may get older"},
}

func (m Model) helpLines(s *screen) []string {
	var lines []string
	list := func(title string, rows [][2]string) {
		const names = 22
		lines = append(lines, s.p.In(layout.Bold, title))
		for _, r := range rows {
			width := min(s.p.Style.Width, proseWidth)
			if width < foldWidth {
				lines = append(lines, "  "+r[0])
				for _, l := range layout.Wrap(s.p.Text(r[1]), width-4) {
					lines = append(lines, "    "+l)
				}
				continue
			}
			for i, l := range layout.Wrap(s.p.Text(r[1]), width-names-2) {
				name := ""
				if i == 0 {
					name = r[0]
				}
				lines = append(lines, "  "+layout.Pad(name, names)+l)
			}
		}
		lines = append(lines, "")
	}
	list("Keys", helpKeys)
	list("Words", helpWords)
	lines = append(lines, s.p.In(layout.Bold, "Cost"))
	for _, l := range layout.Wrap(s.p.Text(costText(m.frame.Cost)), min(s.p.Style.Width, proseWidth)-2) {
		lines = append(lines, "  "+l)
	}
	return lines
}

// costText says what slowpath takes of this host.
func costText(c Cost) string {
	text := "slowpath takes " + format.Percent(c.Process) + " of a core now, of it " + format.Percent(c.Screen) +
		" for the screen and " + format.Percent(c.Verdicts) + " for verdicts (last minute), and " +
		format.Bytes(c.Bytes) + " of memory"
	if c.Kernel >= 0 {
		text += "; its programs in the kernel take " + format.Percent(c.Kernel) + " of a core beside that"
	}
	return text
}
