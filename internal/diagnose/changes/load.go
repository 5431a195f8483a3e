package changes

import (
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/stats"
)

// load adds what callers do otherwise than before: commands that are new to the server, and jumps of how much they ask.
func (h *history) load() {
	h.newCommands()
	commands, in, out := h.n.Series(series.TotalCommandsProcessed), h.n.Series(series.TotalNetInputBytes),
		h.n.Series(series.TotalNetOutputBytes)
	calls := rates(commands, nil)
	h.jump("call rate", calls, nil, func(v float64) string { return format.Thousands(v) + " commands per second" })
	perCall := func(v float64) string { return format.Bytes(int64(v)) + " per command" }
	h.jump("request size", rates(in, commands), rates(in, nil), perCall)
	h.jump("reply size", rates(out, commands), rates(out, nil), perCall)
}

// callers adds programs that connected for the first time, where they were not seen for longer before than they stay
// away between two of their connections. Those of one name are one.
func (h *history) callers(n *facts.Node) {
	type program struct {
		conns []*caller.Conn
		old   bool
	}
	programs := map[string]*program{}
	for _, c := range caller.ClientCallers(n) {
		name := c.Comm
		if c.PID == 0 {
			name = c.Name
		}
		p := programs[name]
		if p == nil {
			p = &program{}
			programs[name] = p
		}
		p.conns = append(p.conns, c.Conns...)
		p.old = p.old || len(c.Opened()) < len(c.Conns)
	}
	for name, p := range programs {
		if p.old || len(p.conns) == 0 {
			continue
		}
		slices.SortFunc(p.conns, func(a, b *caller.Conn) int { return int(a.OpenNs - b.OpenNs) })
		first, until := p.conns[0].OpenNs, p.conns[0].OpenNs
		absent := int64(0)
		for _, k := range p.conns {
			absent = max(absent, k.OpenNs-until)
			if k.CloseNs == 0 {
				until = n.EndNs
			}
			until = max(until, k.CloseNs)
		}
		if first-n.StartNs <= max(absent, facts.PollIntervalNs) {
			continue
		}
		h.add(Change{
			Kind: Caller, Names: []string{"new caller"}, Source: recording.SourceTap,
			Span: facts.Span{FromNs: first, ToNs: first},
			Text: format.Name(name) + " connected for the first time, and made " +
				format.Count(int64(len(p.conns)), "connection"),
		})
	}
}

// newCommands adds commands that the server had not counted before.
func (h *history) newCommands() {
	for _, counted := range h.n.CountedCommands() {
		s := h.n.Series(series.CommandCalls(counted))
		if !facts.IsDataCommand(counted) || len(s) < 2 || s[0].Value != 0 || s[1].Value == 0 {
			continue
		}
		op := strings.ToUpper(strings.ReplaceAll(counted, "|", " "))
		if _, admin := recording.Administers(op); admin {
			continue
		}
		c := Change{
			Kind: NewCommand, Names: []string{"new command"}, Source: recording.SourceServer,
			Span: facts.Span{FromNs: s[0].TimeNs, ToNs: s[1].TimeNs},
			Text: op + " for the first time since the server counts",
		}
		for _, suspect := range h.n.Ledger.Suspects {
			if suspect.Node == h.n.Address && suspect.Command == op {
				if by := caller.ClientText(h.n, suspect); by != "" && !slices.Contains(c.By, by) {
					c.By = append(c.By, by)
				}
			}
		}
		h.add(c)
	}
}

// rates are the growth of a counter between polls, per second, or per growth of another one.
func rates(s, per recording.Series) (out recording.Series) {
	for i := 1; i < len(s); i++ {
		of := float64(s[i].TimeNs-s[i-1].TimeNs) / 1e9
		if per != nil {
			before, _ := per.At(s[i-1].TimeNs)
			after, _ := per.At(s[i].TimeNs)
			of = after - before
		}
		if of > 0 {
			out = append(out, recording.Point{TimeNs: s[i].TimeNs, Value: (s[i].Value - s[i-1].Value) / of})
		}
	}
	return out
}

// jump adds the first time at which a rate rises at once, and stays high; with it that of another, if there is one: the
// size of a command also rises where the small ones become fewer.
func (h *history) jump(name string, s, with recording.Series, text func(float64) string) {
	for i := degree.Several; i+degree.Several <= len(s); i++ {
		before, after := s[i-degree.Several:i], s[i:i+degree.Several]
		if !jumps(before, after) {
			continue
		}
		at := facts.Span{FromNs: s[i-1].TimeNs, ToNs: s[i].TimeNs}
		if with != nil && !jumps(between(with, before), between(with, after)) {
			continue
		}
		h.add(Change{
			Kind: Load, Names: []string{name}, Source: recording.SourceServer, Span: at,
			Text: fmt.Sprintf("the %s rose to %s (before: %s)", name, text(middle(after)), text(middle(before))),
		})
		return
	}
}

func jumps(before, after recording.Series) bool {
	most, ok := before.Max()
	least, some := after.Min()
	return ok && some && least >= degree.Several*most && least > 0
}

// between are the points of a series at the times of another one.
func between(s, times recording.Series) (out recording.Series) {
	for _, p := range s {
		if p.TimeNs >= times[0].TimeNs && p.TimeNs <= times[len(times)-1].TimeNs {
			out = append(out, p)
		}
	}
	return out
}

func middle(s recording.Series) float64 {
	values := make([]float64, len(s))
	for i, p := range s {
		values[i] = p.Value
	}
	return stats.Median(values)
}
