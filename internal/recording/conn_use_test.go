package recording

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// TestConnUses: how connections were used is read as it was written, and the same, without the longest pauses, of early
// recordings of version 5 of the schema, and of versions 4 and 3, which had a column and a sample for each number.
func TestConnUses(t *testing.T) {
	want := []ConnUse{
		{TimeNs: 5, Calls: 2, InFlightNs: 30, IdleNs: 40, IdleMaxNs: 30},
		{TimeNs: 9, Calls: 7, InFlightNs: 60, IdleNs: 80, Prompt: -1, Served: 2, IdleMaxNs: 40},
		{
			TimeNs: 12, Calls: 8, InFlightNs: 61, IdleNs: 81, Prompt: 4, Turns: 3, Handed: 2, WaitedNs: 100,
			WaitedMaxNs: 70, KeptNs: 20, Served: 2, IdleMaxNs: 1,
		},
	}
	read := func(version string, write func(w *Writer)) *Recording {
		t.Helper()
		path := filepath.Join(t.TempDir(), "x.slowpath")
		w, err := Create(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		write(w)
		w.SetMeta(MetaSchema, version)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	now := read("5", func(w *Writer) {
		for i := range want {
			w.ConnUse("10.0.0.2:4000", want[len(want)-1-i])
		}
	})
	early := read("5", func(w *Writer) {
		for _, u := range want {
			packed := u.pack()
			w.put(connUseTable, []any{u.TimeNs, "10.0.0.2:4000", packed[:len(packed)-1]}) // IdleMaxNs has one byte
		}
	})
	columns := read("4", func(w *Writer) {
		w.keep(execute(w.db, "DROP TABLE conn_use"))
		w.keep(execute(w.db, "CREATE TABLE conn_use(time_ns INTEGER, client TEXT, calls INTEGER, in_flight_ns INTEGER,"+
			"idle_ns INTEGER, prompt INTEGER, turns INTEGER, handed INTEGER, waited_ns INTEGER, waited_max_ns INTEGER,"+
			"kept_ns INTEGER, served INTEGER)"))
		for _, u := range want {
			w.keep(execute(w.db, "INSERT INTO conn_use VALUES(?,'10.0.0.2:4000',?,?,?,?,?,?,?,?,?,?)", u.TimeNs,
				u.Calls, u.InFlightNs, u.IdleNs, u.Prompt, u.Turns,
				u.Handed, u.WaitedNs, u.WaitedMaxNs, u.KeptNs, u.Served))
		}
	})
	before := read("3", func(w *Writer) {
		w.keep(execute(w.db, "DROP TABLE conn_use"))
		sample := func(at int64, name string, v int64) {
			w.Sample(Sample{at, SourceTap, "conn:10.0.0.2:4000", name, float64(v)})
		}
		for _, u := range want {
			sample(u.TimeNs, "calls", u.Calls)
			sample(u.TimeNs, "in_flight_ns", u.InFlightNs)
			sample(u.TimeNs, "idle_ns", u.IdleNs)
			sample(u.TimeNs, "prompt", u.Prompt)
			sample(u.TimeNs, "turns", u.Turns)
			sample(u.TimeNs, "handed", u.Handed)
			sample(u.TimeNs, "waited_ns", u.WaitedNs)
			sample(u.TimeNs, "waited_max_ns", u.WaitedMaxNs)
			sample(u.TimeNs, "kept_ns", u.KeptNs)
			sample(u.TimeNs, "served", u.Served)
		}
		w.Sample(Sample{5, SourceHost, "conn:10.0.0.2:4000", "waited_ns", 1})
	})
	for name, r := range map[string]*Recording{
		"now": now, "early version 5": early, "version 4": columns, "before": before,
		"without": now.Without(SourceHost),
	} {
		want := slices.Clone(want)
		for i := range want {
			if r != now && name != "without" {
				want[i].IdleMaxNs = -1
			}
		}
		got := slices.Collect(r.ConnUses("10.0.0.2:4000"))
		if !reflect.DeepEqual(got, want) || len(r.UsedConns()) != 1 {
			t.Errorf("%s: %v\n%+v, want\n%+v", name, r.UsedConns(), got, want)
		}
	}
	if s := before.Series(SourceHost, "conn:10.0.0.2:4000", "waited_ns"); len(s) != 1 {
		t.Errorf("the host's sample: %v", s)
	}
	if conns := now.Without(SourceTap).UsedConns(); len(conns) != 0 {
		t.Errorf("without the tap: %v", conns)
	}
}
