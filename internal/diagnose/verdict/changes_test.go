package verdict

import (
	"path"
	"slices"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/changes"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// TestMoreOftenSince: a change is cited where calls were slow in more of the seconds since than before by more than
// chance, and not where they were slow before as well, or too little was seen of the time before.
func TestMoreOftenSince(t *testing.T) {
	every := func(from, to, gap float64) (out spansOfCalls) {
		for at := from; at < to; at += gap {
			out = append(out, facts.Span{FromNs: int64(at * 1e9), ToNs: int64((at + 0.1) * 1e9)})
		}
		return out
	}
	for name, tt := range map[string]struct {
		slow     spansOfCalls
		changeAt float64
		want     bool
	}{
		"none before, all the time since":     {every(10.5, 20, 0.5), 10, true},
		"all the time, before and since":      {every(0.5, 20, 0.5), 10, false},
		"each third second":                   {every(0.5, 20, 3), 10, false},
		"one stall since":                     {every(14.5, 14.9, 0.1), 10, false},
		"too little was seen before":          {every(1.5, 5, 0.5), 1, false},
		"once before, and all the time since": {append(every(2.5, 3, 1), every(10.5, 20, 0.5)...), 10, true},
		"it came when it was over":            {every(0.5, 10, 0.5), 15, false},
	} {
		at := int64(tt.changeAt * 1e9)
		if got := tt.slow.moreOftenSince(facts.Span{FromNs: at, ToNs: at}, usual{}); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestChangesOfCauses: what causes name as changes exists: the fixed names, commands, and parameters, which are written
// in lower case.
func TestChangesOfCauses(t *testing.T) {
	known := append(recording.AdminCommands(), "restart", "version", "role", "map", "cpu quota", "client cpu quota",
		"memory limit", "cpus", "call rate", "request size", "reply size",
		"queueing discipline", "nftables rules", "route", "package")
	for _, why := range cause.Catalogue() {
		for _, pattern := range why.Changes {
			matches := func(name string) bool { is, err := path.Match(pattern, name); return is && err == nil }
			parameter := !slices.ContainsFunc([]rune(pattern), func(r rune) bool {
				return (r < 'a' || r > 'z') && r != '-' && r != '*'
			})
			if !parameter && !slices.ContainsFunc(known, matches) {
				t.Errorf("%s: nothing is called %q", why.ID, pattern)
			}
		}
	}
}

// TestChangesCited: a recorded restart is cited, and where nothing was changed there is nothing to cite.
func TestChangesCited(t *testing.T) {
	d := Diagnose(corpus.Open(t, "server-restarted"), "test")
	if f := d.Findings[0]; f.Cause != "server-restarted" || len(f.Changes) != 1 ||
		f.Changes[0].Kind != changes.Restart || !f.Changes[0].ByMechanism {
		t.Errorf("%s: %+v", f.Cause, f.Changes)
	}
	for _, scenario := range []string{"server-cfs-throttled", "slow-command", "n-plus-one-roundtrips"} {
		for _, f := range Diagnose(corpus.Open(t, scenario), "test").Findings {
			if len(f.Changes) > 0 {
				t.Errorf("%s: nothing was changed: %+v", f.Cause, f.Changes)
			}
		}
	}
}

// TestCulpritBeforeAnIncident: who set going what an incident is about did so in the minute before it.
func TestCulpritBeforeAnIncident(t *testing.T) {
	rec := corpus.Open(t, "eviction-cycle")
	start, _ := rec.Window()
	node := rec.Nodes()[0]
	rec.Snapshot(recording.Snapshot{
		TimeNs: start - 30e9, Source: recording.Before(recording.SourceServer), Subject: node, Name: "config",
		Body: `{"maxmemory":"0"}`,
	})
	rec.Event(recording.Event{
		TimeNs: start - 4e9, DurationNs: 1e5, Source: recording.Before(recording.SourceTap), Subject: node,
		Kind: recording.KindAdminCommand, Detail: recording.Detail(recording.AdminCommandDetail{
			Op: "CONFIG SET", Client: "127.0.0.1:5000", Process: "ops-shell[812]",
		}),
	})
	rec.Index()
	f := Diagnose(rec, "test").Findings[0]
	if len(f.Changes) != 1 || len(f.Changes[0].By) != 1 || f.Changes[0].By[0] != "ops-shell[812]" {
		t.Errorf("%s: changed before: %+v", f.Cause, f.Changes)
	}
	if len(f.Culprits) == 0 || f.Culprits[0].Process != "ops-shell[812]" {
		t.Errorf("%s: by %+v", f.Cause, f.Culprits)
	}
}
