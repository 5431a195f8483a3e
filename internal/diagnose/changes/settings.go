package changes

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// setting is a parameter whose value two readings differ in.
type setting struct{ name, from, to string }

// settings are the parameters that were changed: by differences between two CONFIG GET, and for what these do not show,
// as where CONFIG is forbidden, of the two parameters that INFO has as well. Only parameters that hold no secret are
// ever read.
func (h *history) settings() {
	var last map[string]string
	var lastNs int64
	for _, s := range h.n.Rec.Snapshots {
		if s.Source != recording.SourceServer || s.Subject != h.n.Address || s.Name != "config" {
			continue
		}
		now, ok := recording.BodyOf[map[string]string](s)
		if !ok {
			continue
		}
		if last != nil {
			h.differ(last, now, facts.Span{FromNs: lastNs, ToNs: s.TimeNs})
		}
		last, lastNs = now, s.TimeNs
	}
	text := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	limit := h.n.Series(series.MaxMemory)
	for i := 1; i < len(limit); i++ {
		from, to := limit[i-1], limit[i]
		h.info(facts.Span{FromNs: from.TimeNs, ToNs: to.TimeNs}, setting{"maxmemory", text(from.Value), text(to.Value)})
	}
	for i := 1; i < len(h.n.InfoTexts); i++ {
		from, to := h.n.InfoTexts[i-1], h.n.InfoTexts[i]
		h.info(nodes.PollBefore(h.n, facts.Span{FromNs: from.TimeNs, ToNs: to.TimeNs}),
			setting{"maxmemory-policy", from.MaxMemoryPolicy, to.MaxMemoryPolicy})
	}
}

// info adds a setting that INFO has, unless that it was changed then is known.
func (h *history) info(when facts.Span, s setting) {
	known := slices.ContainsFunc(h.all, func(c Change) bool {
		return slices.Contains(c.Names, s.name) && c.ToNs >= when.FromNs && c.FromNs <= when.ToNs
	})
	if s.from != s.to && s.from != "" && !known {
		h.set(when, []setting{s})
	}
}

// differ adds what differs between two readings of all settings.
func (h *history) differ(before, now map[string]string, between facts.Span) {
	var all []setting
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if from, had := before[name]; had && from != now[name] {
			all = append(all, setting{name, from, now[name]})
		}
	}
	if len(all) > 0 {
		h.set(h.counted(between), all)
	}
}

// counted narrows the time between two readings of the settings to that between two polls, by the server's own count of
// CONFIG SET (from 7.0), or of CONFIG, of which slowpath's own came before the first of the two.
func (h *history) counted(between facts.Span) facts.Span {
	for _, command := range []string{"config|set", "config"} {
		for _, s := range slices.Backward(h.n.Series(series.CommandCalls(command)).Steps()) {
			if s.ToNs <= between.ToNs && s.ToNs > between.FromNs {
				return facts.Span{FromNs: s.FromNs, ToNs: s.ToNs}
			}
		}
	}
	return nodes.PollBefore(h.n, between)
}

// set adds settings that were changed in a stretch of time: with the CONFIG SET that the tap saw then.
func (h *history) set(when facts.Span, all []setting) {
	c := Change{Kind: Setting, Span: when, Source: recording.SourceServer, Text: "CONFIG SET"}
	for i, s := range all {
		c.Names = append(c.Names, s.name)
		if i > 0 {
			c.Text += ","
		}
		if i < degree.Listed {
			c.Text += " " + changed(s.name, s.to, s.from)
		}
	}
	if more := len(all) - degree.Listed; more > 0 {
		c.Text += " and " + strconv.Itoa(more) + " more"
	}
	var calls []caller.AdminCommand
	for _, a := range caller.AdminCommands(h.n) {
		if a.Command == "CONFIG SET" && a.ToNs >= when.FromNs && a.FromNs <= when.ToNs {
			calls = append(calls, a)
		}
	}
	if len(calls) > 0 {
		c.Source, c.Span = recording.SourceTap, facts.Span{FromNs: calls[0].FromNs, ToNs: calls[len(calls)-1].ToNs}
	}
	for _, a := range calls {
		if by := name(a.Who); !slices.Contains(c.By, by) {
			c.By = append(c.By, by)
		}
	}
	h.add(c)
}

const (
	// valueBytes bounds the text of a value.
	// Bound: arithmetic, the size of a text.
	valueBytes = 60
)

// value is that of a setting as somebody would type it: sizes in the units of the server.
func value(text string) string {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		for _, u := range []struct {
			name  string
			bytes int64
		}{{"gb", 1 << 30}, {"mb", 1 << 20}} {
			if n >= u.bytes && n%u.bytes == 0 {
				return strconv.FormatInt(n/u.bytes, 10) + u.name
			}
		}
	}
	if len(text) > valueBytes {
		text = strings.ToValidUTF8(text[:valueBytes], "") + "…"
	}
	if text == "" {
		return `""`
	}
	return text
}
