package account

import (
	"strings"

	"slowpath/internal/recording"
)

// slowlogSuspects are the entries of SLOWLOG.
func slowlogSuspects(rec *recording.Recording) []Suspect {
	var out []Suspect
	for _, e := range rec.EventsOf(recording.SourceServer, "", recording.KindSlowlog) {
		d := recording.DetailOf[recording.SlowlogDetail](e)
		text := d.Command
		if d.Client != "" {
			text += " from " + d.Client
		}
		out = append(out, Suspect{
			Kind: KindCommand, Node: e.Subject, Command: d.Command, ArgCount: d.ArgCount, ArgBytes: d.ArgBytes,
			Client: d.Client,
			FromNs: e.TimeNs - e.DurationNs, ToNs: e.TimeNs + d.WindowNs, DurationNs: e.DurationNs, Count: 1,
			Source: bySlowlog, Text: text, Own: !ConstantTime(d.Command),
		})
	}
	return out
}

// forkSuspects are the forks whose times INFO has.
func forkSuspects(rec *recording.Recording) []Suspect {
	var out []Suspect
	for _, e := range rec.EventsOf(recording.SourceServer, "", recording.KindFork) {
		d := recording.DetailOf[recording.ForkDetail](e)
		out = append(out, Suspect{
			Kind: KindFork, Node: e.Subject,
			FromNs: e.TimeNs, ToNs: e.TimeNs + max(d.WindowNs, e.DurationNs), DurationNs: e.DurationNs, Count: 1,
			Source: byInfo, Text: strings.TrimSpace("fork for " + d.Why),
		})
	}
	return out
}

// latencySuspects are the entries of LATENCY that are jobs of the event loop.
func latencySuspects(rec *recording.Recording) []Suspect {
	var out []Suspect
	for _, e := range rec.EventsOf(recording.SourceServer, "", recording.KindLatency) {
		d := recording.DetailOf[recording.LatencyDetail](e)
		if kind := latencyKind(d.Event); kind != "" {
			out = append(out, Suspect{
				Kind: kind, Node: e.Subject,
				FromNs: e.TimeNs - e.DurationNs, ToNs: e.TimeNs + d.WindowNs, DurationNs: e.DurationNs, Count: 1,
				Source: byLatency, Text: d.Event + " (LATENCY)",
			})
		}
	}
	return out
}

// latencyKind is the kind of suspect that an event of LATENCY is; empty for none.
func latencyKind(event string) string {
	switch {
	case event == "fork":
		return KindFork
	case event == "expire-del", event == "eviction-del":
		return KindFree
	case event == "expire-cycle":
		return KindExpire
	case strings.HasPrefix(event, "eviction"):
		return KindEvict
	case strings.HasPrefix(event, "aof-"):
		return KindAOF
	case event == "active-defrag-cycle":
		return KindDefrag
	}
	return ""
}
