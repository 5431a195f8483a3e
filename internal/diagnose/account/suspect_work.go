package account

import (
	"fmt"
	"sort"
	"strings"

	"slowpath/internal/recording"
)

// workSuspects are what the main threads did for a millisecond and more, longest first.
func workSuspects(rec *recording.Recording, threads map[string]*mainThread) []Suspect {
	var out []Suspect
	for _, node := range rec.Nodes() {
		if threads[node] == nil {
			continue
		}
		for _, w := range threads[node].works {
			if w.OnCPUNs >= MinSuspectNs {
				out = append(out, newWorkSuspect(w.Event, w.ActivityDetail))
			}
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].DurationNs > out[j].DurationNs })
	return out
}

func newWorkSuspect(e recording.Event, d recording.ActivityDetail) Suspect {
	s := Suspect{
		Kind: KindCommand, Node: e.Subject, Command: d.Op, ArgCount: d.Args, ArgBytes: d.Bytes,
		Client: d.Client, Process: d.Process,
		FromNs: e.TimeNs, ToNs: e.TimeNs + e.DurationNs, DurationNs: e.DurationNs, OnCPUNs: d.OnCPUNs, Count: 1,
		Calls: d.Calls, Source: recording.SourceTap,
		Text: workText(d), Busy: d.OnCPUNs >= e.DurationNs/2 || d.OnCPUNs >= MinSeenBusyNs,
		Stopped: d.OnCPUNs < e.DurationNs/2, sends: d.Sends,
	}
	if d.Op == "MULTI" {
		s.Command, s.Text = "EXEC", strings.Replace(s.Text, "MULTI", "MULTI … EXEC", 1)
	}
	return s
}

// workText names what a thread did, for people.
func workText(d recording.ActivityDetail) string {
	from := d.Client
	if d.Process != "" {
		from += " (" + d.Process + ")"
	}
	switch {
	case d.Sends:
		return "sending a reply to " + from
	case d.Client == "":
		return "its own work"
	case d.Calls > 1:
		return fmt.Sprintf("%s and %d more from %s", d.Op, d.Calls-1, from)
	case d.Op == "":
		return "a request from " + from
	}
	return d.Op + " from " + from
}
