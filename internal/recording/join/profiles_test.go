package join

import (
	"strings"
	"testing"

	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// profiled adds an application to a recording: goroutines in a function, and samples of its process on the CPU at a
// time.
func profiled(t *testing.T, r *recording.Recording, function string, at int64) {
	t.Helper()
	body, err := stacks.Write(&stacks.Profile{
		Types:  []stacks.Type{{Name: "goroutine", Unit: "count"}},
		Stacks: []stacks.Stack{{Frames: []string{function}, Values: []int64{3}, TimeNs: at}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for subject, kind := range map[string]string{
		"pprof:127.0.0.1:6060": recording.ProfileGoroutine,
		"process:7":            recording.ProfileCPUClock,
	} {
		r.Profile(recording.Profile{TimeNs: at, Subject: subject, Kind: kind, Pprof: body})
		r.Snapshot(recording.Snapshot{
			TimeNs: at, Source: recording.SourceProfile, Subject: subject,
			Name: recording.SnapshotApplication,
			Body: recording.Detail(recording.Profiled{Name: function, Node: "redis:6379"}),
		})
		r.Sample(recording.Sample{
			TimeNs: at, Source: recording.SourceProfile, Subject: subject, Name: "read_ns",
			Value: 9,
		})
		r.Event(recording.Event{
			TimeNs: at, Source: recording.SourceProfile, Subject: subject,
			Kind: recording.KindBlindSpot, Detail: recording.Detail(recording.BlindSpot{What: function}),
		})
	}
	r.Snapshot(recording.Snapshot{
		Source: recording.SourceProfile, Subject: recording.SubjectSelf,
		Name: recording.SnapshotFrames, Body: "# of " + function,
	})
}

// TestProfiles: applications of both hosts stay apart, also by the same address and number; times are those of the
// server's clock.
func TestProfiles(t *testing.T) {
	const offset = int64(5e9)
	w := newWorld()
	w.call(trip{1e12, 1e6, 5e6, 2e6, 1e5}, offset)
	profiled(t, w.server, "servers", 1e12+offset)
	profiled(t, w.client, "clients", 1e12)
	w.server.Index()
	w.client.Index()
	rec, _, err := All([]*recording.Recording{w.client, w.server}, false)
	if err != nil {
		t.Fatal(err)
	}
	near := func(at int64) bool { return at > 1e12+offset-1e8 && at < 1e12+offset+1e8 }
	for subject, function := range map[string]string{
		"pprof:127.0.0.1:6060": "servers", "process:7": "servers",
		"pprof:127.0.0.1:6060#2": "clients", "process:7#2": "clients",
	} {
		found := 0
		for _, p := range rec.Profiles {
			read, err := stacks.Read(p.Pprof)
			if err != nil {
				t.Fatal(err)
			}
			if p.Subject != subject {
				continue
			}
			found++
			if read.Stacks[0].Frames[0] != function || !near(p.TimeNs) || p.Kind == recording.ProfileCPUClock &&
				!near(read.Stacks[0].TimeNs) {
				t.Errorf("%s: %+v at %d", subject, read, p.TimeNs)
			}
		}
		snap, ok := rec.SnapshotOf(recording.SourceProfile, subject, recording.SnapshotApplication)
		if n := len(rec.EventsOf(recording.SourceProfile, subject, recording.KindBlindSpot)); found != 1 || n != 1 ||
			!ok || !strings.Contains(snap.Body, function) {
			t.Errorf("%s: %d profiles, %d blind spots, %+v", subject, found, n, snap)
		}
		if function == "clients" && !strings.Contains(snap.Body, "127.0.0.1:6379") {
			t.Errorf("%s is of the node as the client called it: %s", subject, snap.Body)
		}
		if s := rec.Series(recording.SourceProfile, subject, "read_ns"); len(s) != 1 || !near(s[0].TimeNs) {
			t.Errorf("%s: %v", subject, s)
		}
	}
	if own, _ := rec.SnapshotOf(recording.SourceProfile, recording.SubjectSelf,
		recording.SnapshotFrames); own.Body != "# of servers\n# of clients" {
		t.Errorf("tables of frames %q", own.Body)
	}
	if !rec.Used(recording.SourceProfile) {
		t.Error("the source is not told of")
	}
}
