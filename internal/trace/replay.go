package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/source/tap"
)

// Replay passes the rows of the tap in a recording to a watch, calls in the order of their ends.
func Replay(r *recording.Recording, w *Watch) {
	calls := slices.DeleteFunc(slices.Clone(r.Calls),
		func(c recording.Call) bool { return c.Source != recording.SourceTap })
	slices.SortStableFunc(calls, func(a, b recording.Call) int { return cmp.Compare(a.EndNs, b.EndNs) })
	w.servers = serversOf(r)
	for _, c := range calls {
		w.Call(c, r.SegmentsOf(c.ID)...)
	}
	for _, h := range r.Histograms {
		w.Histogram(h)
	}
	for _, e := range r.Events {
		w.Event(e)
	}
	if filter, ok := r.Meta[recording.MetaProcessFilter]; ok {
		w.SetMeta(recording.MetaProcessFilter, filter)
	}
	for _, name := range r.Names(recording.SourceTap, recording.SubjectSelf, "tap.") {
		series := r.Series(recording.SourceTap, recording.SubjectSelf, name)
		last := series[len(series)-1]
		w.Sample(recording.Sample{
			TimeNs: last.TimeNs, Source: recording.SourceTap, Subject: recording.SubjectSelf,
			Name: name, Value: last.Value,
		})
	}
}

// serversOf are the processes of the nodes that ran on the host of the recording, by address.
func serversOf(r *recording.Recording) map[string]string {
	out := map[string]string{}
	for _, s := range r.Snapshots {
		var p recording.ServerProcess
		if s.Source == recording.SourceHost && s.Name == "process" && json.Unmarshal([]byte(s.Body), &p) == nil {
			out[s.Subject] = fmt.Sprintf("%s[%d]", p.Comm, p.PID)
		}
	}
	return out
}

// Callers are the processes whose calls a recording has, each name once.
func Callers(r *recording.Recording) []string {
	seen := map[string]bool{}
	for _, c := range r.Calls {
		if c.Source == recording.SourceTap && c.Client != "" {
			seen[processNumber.ReplaceAllString(c.Client, "")] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// SlowOf is the slow threshold of the tap in a recording.
func SlowOf(r *recording.Recording) time.Duration {
	if d, err := time.ParseDuration(r.Meta[recording.MetaSlow]); err == nil && d > 0 {
		return d
	}
	return tap.DefaultSlow
}

// Begin writes the meta rows of a recording made by trace; End marks it as complete.
func Begin(sink recording.Sink, nowNs int64, version string, slow time.Duration, nodes []tap.Node) {
	var addresses []string
	for _, n := range nodes {
		if !slices.Contains(addresses, n.Address) {
			addresses = append(addresses, n.Address)
		}
	}
	for key, value := range map[string]string{
		recording.MetaVersion: version, recording.MetaStart: strconv.FormatInt(nowNs, 10),
		recording.MetaTarget: addresses[0],
		recording.MetaNodes:  recording.Detail(addresses), recording.MetaKind: "unknown",
		recording.MetaSlow: slow.String(),
	} {
		sink.SetMeta(key, value)
	}
	for _, name := range []string{
		recording.SourceProbe, recording.SourceServer, recording.SourceHost,
		recording.SourceTap,
	} {
		s := recording.SourceStatus{Name: name, Used: name == recording.SourceTap}
		if !s.Used {
			s.Why = "recorded by slowpath trace; slowpath record keeps all sources"
		}
		sink.SetMeta(recording.MetaSource+name, recording.Detail(s))
	}
}

// End writes when the trace ended.
func End(sink recording.Sink, nowNs int64) {
	sink.SetMeta(recording.MetaEnd, strconv.FormatInt(nowNs, 10))
}
