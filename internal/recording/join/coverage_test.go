package join

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"slowpath/internal/recording"
)

// TestFastAtServer: a server's recording has calls above its slow threshold. If none can be missing, all calls that it
// does not have were faster.
func TestFastAtServer(t *testing.T) {
	const slow = int64(5e6)
	build := func(t *rapid.T) *world {
		w := anyWorld(t)
		w.call(trip{w.client.Calls[w.n-1].EndNs + 1e9, 1e6, 2 * slow, 1e6, 0}, w.offset)
		w.server.Index() // by time, with the clock's drift
		first, last := w.server.Calls[0].IntendedNs, w.server.Calls[w.n-1].EndNs
		w.server.Calls = slices.DeleteFunc(w.server.Calls,
			func(c recording.Call) bool { return c.EndNs-c.IntendedNs < slow })
		for id := range w.n {
			w.server.SetSegments(int64(id+1), nil)
		}
		for i, c := range w.server.Calls { // as the server's host would have recorded them
			w.server.Calls[i].ID = int64(i + 1)
			w.server.SetSegments(int64(i+1), []recording.Segment{{
				Actor: recording.Server, State: recording.Exec,
				FromNs: c.IntendedNs, ToNs: c.EndNs,
			}})
		}
		if rapid.Bool().Draw(t, "pooled") {
			w.server.Snapshot(recording.Snapshot{
				TimeNs: first - 1e12, Source: recording.SourceTap,
				Subject: "conn:10.0.0.2:4000", Name: recording.SnapshotServed,
			})
		} else {
			w.server.Event(recording.Event{
				TimeNs: first - 1e12, Source: recording.SourceTap, Kind: recording.KindOpen,
				Detail: recording.Detail(recording.ConnDetail{Client: "10.0.0.2:4000", Side: recording.Server}),
			})
		}
		w.server.SetMeta(recording.MetaEnd, fmt.Sprint(last+1e12))
		w.server.SetMeta(recording.MetaSlow, "5ms")
		return w
	}
	rapid.Check(t, func(t *rapid.T) {
		w := build(t)
		calls, slowThere := int(w.n), len(w.server.Calls)
		rec, results, err := All([]*recording.Recording{w.client, w.server}, false)
		if err != nil {
			t.Fatal(err)
		}
		if r := results[0]; r.Joined != slowThere || r.Fast != calls-slowThere || r.Unmatched != 0 ||
			len(rec.Calls) != calls {
			t.Fatalf("%+v of %d calls, %d of them slow at the server", r, calls, slowThere)
		}
		for _, c := range rec.Calls {
			segs, truth := rec.SegmentsOf(c.ID), w.truth[c.Seq]
			at := c.IntendedNs
			for _, s := range segs {
				if s.FromNs != at || s.ToNs <= at {
					t.Fatalf("no partition: %+v of %+v", segs, c)
				}
				at = s.ToNs
			}
			if at != c.EndNs || in(segs, recording.Network) > truth.out+truth.back || c.Side == recording.Client &&
				in(segs, recording.Nobody) > slow {
				t.Fatalf("%+v of %+v: %+v", segs, truth, c)
			}
		}
	})
	for name, spoil := range map[string]func(*recording.Recording){
		"a report was lost": func(r *recording.Recording) {
			r.Sample(recording.Sample{
				Source: recording.SourceTap, Subject: recording.SubjectSelf, Name: "tap.dropped",
				Value: 1,
			})
		},
		"a row was lost":     func(r *recording.Recording) { r.SetMeta(recording.MetaDropped, "1") },
		"calls were thinned": func(r *recording.Recording) { r.Calls[len(r.Calls)-1].ID += 5 },
		"it was killed":      func(r *recording.Recording) { delete(r.Meta, recording.MetaEnd) },
		"the port was reused": func(r *recording.Recording) {
			for range 2 {
				r.Event(recording.Event{
					Source: recording.SourceTap, Kind: recording.KindOpen,
					Detail: recording.Detail(recording.ConnDetail{Client: "10.0.0.2:4000", Side: recording.Server}),
				})
			}
		},
		"it ended before": func(r *recording.Recording) { r.SetMeta(recording.MetaEnd, "1") },
		"it began afterwards": func(r *recording.Recording) {
			for i := range r.Events {
				r.Events[i].TimeNs += 1e15
			}
			for i := range r.Snapshots {
				r.Snapshots[i].TimeNs += 1e15
			}
			r.Calls = r.Calls[len(r.Calls)-1:]
			r.Calls[0].ID = 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := build(t)
				spoil(w.server)
				if _, results, err := All([]*recording.Recording{w.client, w.server}, false); err != nil ||
					results[0].Fast != 0 {
					t.Fatalf("%+v, %v", results, err)
				}
			})
		})
	}
}
