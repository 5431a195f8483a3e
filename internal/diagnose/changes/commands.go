package changes

import (
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// commands adds the commands that changed the server: those that the tap saw, else those that the server counts. One
// that comes again and again is a change the first time. A CONFIG SET whose setting is known is there already.
func (h *history) commands() {
	seen := map[string]*Change{}
	times := map[string]int{}
	add := func(c Change, op string, n int) {
		if h.isSetting(op, c.Span) {
			return
		}
		if times[op] += n; seen[op] != nil {
			return
		}
		c.Kind, c.Names, c.Text = Command, []string{op}, op
		seen[op] = &c
	}
	for _, a := range caller.AdminCommands(h.n) {
		add(Change{Span: a.Span, By: []string{name(a.Who)}, Source: recording.SourceTap}, a.Command, 1)
	}
	for _, op := range recording.AdminCommands() {
		if len(seen) > 0 || h.n.Rec.Used(recording.SourceTap) {
			break
		}
		for _, s := range h.n.Series(series.CommandCalls(series.InCommandstats(op))).Steps() {
			c := Change{Span: facts.Span{FromNs: s.FromNs, ToNs: s.ToNs}, Source: recording.SourceServer}
			if who := caller.ClientText(h.n, account.Suspect{Command: op}); who != "" {
				c.By = []string{who}
			}
			add(c, op, int(s.Delta))
		}
	}
	for op, c := range seen {
		if n := times[op]; n > 1 {
			c.Text += ", the first of " + format.Thousands(n)
		}
		h.add(*c)
	}
}

// isSetting reports whether a command is a CONFIG SET whose setting is known.
func (h *history) isSetting(op string, when facts.Span) bool {
	return op == "CONFIG SET" && slices.ContainsFunc(h.all, func(c Change) bool {
		return c.Kind == Setting && c.ToNs >= when.FromNs && c.FromNs <= when.ToNs
	})
}

// restarts adds restarts of the server, and the new version where it has another one since. SHUTDOWN has no reply: the
// connection that sent it ends with it.
func (h *history) restarts() {
	for _, r := range nodes.Restarts(h.n) {
		c := Change{Kind: Restart, Span: r.Span, Names: []string{"restart"}, Source: recording.SourceServer}
		c.Text = "the server was restarted"
		if r.PIDAfter > 0 {
			c.Source = recording.SourceHost
		}
		for e := range h.n.Rec.Conns(h.n.Address, recording.KindClose) {
			if strings.HasPrefix(e.Op, "SHUTDOWN") && e.TimeNs >= r.FromNs-facts.PollIntervalNs && e.TimeNs <= r.ToNs {
				c.Text, c.Source = "the server was restarted after SHUTDOWN", recording.SourceTap
				if by := name(caller.WhoOf(h.n, e.Client, "", e.TimeNs)); !slices.Contains(c.By, by) {
					c.By = append(c.By, by)
				}
			}
		}
		h.add(c)
	}
	for i, in := range h.n.InfoTexts {
		if i == 0 {
			continue
		}
		before := h.n.InfoTexts[i-1]
		if from, to := before.Version(), in.Version(); from != to && from != "" && to != "" {
			h.add(Change{
				Kind: Version, Names: []string{"version"}, Source: recording.SourceServer,
				Span: nodes.PollBefore(h.n, facts.Span{FromNs: before.TimeNs, ToNs: in.TimeNs}),
				Text: changed("the server's version is", to, from),
			})
		}
	}
}

// roles adds changes of the server's role.
func (h *history) roles() {
	for _, e := range h.n.Events(recording.SourceServer, recording.KindRoleChange) {
		d := recording.DetailOf[struct{ From, To string }](e)
		h.add(Change{
			Kind: Role, Names: []string{"role"}, Source: recording.SourceServer,
			Span: nodes.PollBefore(h.n, facts.Span{FromNs: h.n.StartNs, ToNs: e.TimeNs}),
			Text: changed("the server's role is", roleName(d.To), roleName(d.From)),
		})
	}
}

// roleName is how this program calls a role that INFO names.
func roleName(info string) string {
	switch info {
	case "master":
		return "primary"
	case "slave":
		return "replica"
	}
	return info
}
