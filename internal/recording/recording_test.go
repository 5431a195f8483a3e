package recording

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "x.slowpath") }

func create(t testing.TB, path string, bound int64) *Writer {
	t.Helper()
	w, err := Create(path, bound)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func TestRoundTrip(t *testing.T) {
	path := file(t)
	w := create(t, path, 0)
	call := Call{
		Source: SourceProbe, Conn: "kept", Op: "GET", KeyHash: "h", ArgCount: 2, RequestBytes: 30,
		ReplyBytes: 5, IntendedNs: 10, StartNs: 11, EndNs: 40, Node: "a:1", Slot: -1, Error: "ERR",
		Side: Server, Client: "app[7]", Seq: 1<<32 - 2,
	}
	seg := Segment{Actor: "client", State: "run-queue", FromNs: 30, ToNs: 40, Culprit: "slowpath"}
	w.Call(call, seg)
	w.Sample(Sample{TimeNs: 5, Source: SourceServer, Subject: "a:1", Name: "used_memory", Value: 1.5})
	w.Event(Event{TimeNs: 6, DurationNs: 7, Source: SourceHost, Subject: "a:1", Kind: KindFrozen, Detail: "{}"})
	w.Snapshot(Snapshot{TimeNs: 8, Source: SourceServer, Subject: "a:1", Name: "config", Body: "{}"})
	w.Histogram(Histogram{Second: 1, Source: SourceProbe, Node: "a:1", Op: "GET", HDR: []byte{1, 2}})
	w.SetMeta(MetaTarget, "first")
	w.SetMeta(MetaTarget, "a:1")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	call.ID, seg.CallID = 1, 1
	if segs := r.SegmentsOf(1); !slices.Equal(r.Calls, []Call{call}) || !slices.Equal(segs, []Segment{seg}) {
		t.Errorf("calls %+v segments %+v", r.Calls, segs)
	}
	if v, ok := r.Series(SourceServer, "a:1", "used_memory").Last(); !ok || v != 1.5 {
		t.Errorf("sample %v", v)
	}
	if es := r.EventsOf(SourceHost, "a:1", KindFrozen); len(es) != 1 || es[0].DurationNs != 7 {
		t.Errorf("events %+v", es)
	}
	if s, ok := r.SnapshotOf(SourceServer, "a:1", "config"); !ok || s.Body != "{}" {
		t.Errorf("snapshot %+v", s)
	}
	if len(r.Histograms) != 1 || !reflect.DeepEqual(r.Histograms[0].HDR, []byte{1, 2}) || r.Meta[MetaTarget] != "a:1" {
		t.Errorf("histograms %+v meta %v", r.Histograms, r.Meta)
	}
	if left, _ := filepath.Glob(path + "-*"); len(left) != 0 {
		t.Errorf("left beside the file: %v", left)
	}
}

func TestErrExists(t *testing.T) {
	path := file(t)
	create(t, path, 0)
	if _, err := Create(path, 0); !errors.Is(err, os.ErrExist) {
		t.Errorf("%v", err)
	}
}

func TestErrNotRecording(t *testing.T) {
	for name, body := range map[string]string{
		"text": strings.Repeat("not a database ", 20), "empty": "",
		"header": "SQLite format 3\x00" + strings.Repeat("\xff", 4000),
	} {
		path := file(t)
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, ErrNotRecording) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// Of a file that was cut short the rows before the cut are read, and what is missing is said; where even the tables are
// missing it is one error.
func TestCutShort(t *testing.T) {
	path := file(t)
	w := create(t, path, 0)
	const rows = 5000
	for i := range int64(rows) {
		w.Sample(Sample{TimeNs: i, Source: SourceServer, Subject: "a:1", Name: "n", Value: float64(i)})
	}
	w.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for part, read := range map[int]bool{101: false, 4096: false, len(whole) / 2: true, len(whole) - 4096: true} {
		if err := os.WriteFile(path, whole[:part], 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if !read {
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("cut to %d of %d bytes: %v", part, len(whole), err)
			}
			continue
		}
		if err != nil {
			t.Errorf("cut to %d of %d bytes: %v", part, len(whole), err)
			continue
		}
		n := len(r.Series(SourceServer, "a:1", "n"))
		spots := r.EventsOf(SourceRecording, SubjectSelf, KindBlindSpot)
		said := r.Damage
		if n < rows/2*part/len(whole) || n >= rows || len(spots) != 1 ||
			!strings.Contains(said, "(tables sample)") || !strings.Contains(said, "is cut short") {
			t.Errorf("cut to %d of %d bytes: %d of %d samples, %+v", part, len(whole), n, rows, spots)
		}
	}
}

func TestNewerSchema(t *testing.T) {
	path := file(t)
	w := create(t, path, 0)
	w.SetMeta(MetaSchema, "999")
	w.Close()
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "update slowpath") {
		t.Errorf("%v", err)
	}
}

// Recordings of older versions lack columns, and open.
func TestOlderSchema(t *testing.T) {
	for version, columns := range map[string][]string{"1": {"side", "client", "seq"}, "2": {"seq"}} {
		path := file(t)
		w := create(t, path, 0)
		w.Call(Call{Source: SourceTap, Op: "GET", Node: "a:1", Side: Server, Seq: 7})
		w.SetMeta(MetaSchema, version)
		w.Close()
		db, err := openDB(path, "rw")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range columns {
			if err := execute(db, "ALTER TABLE call DROP COLUMN "+c); err != nil {
				t.Fatal(err)
			}
		}
		db.Close()
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if c := r.Calls[0]; c.Op != "GET" || c.Seq != 0 || (c.Side == Server) != (version == "2") {
			t.Errorf("version %s: %+v", version, c)
		}
	}
}

func TestGrowthOverARestart(t *testing.T) {
	s := Series{{0, 10}, {1, 15}, {2, 3}, {3, 4}}
	if g := s.Growth(); g != 9 { // 5, then 3 from zero, then 1
		t.Errorf("%v", g)
	}
	if st := s.Steps(); len(st) != 2 || st[0].Delta != 5 || st[1].Delta != 1 {
		t.Errorf("%+v", st)
	}
}

// TestEventsOf finds events of a subject and of all, those that were added after Index among them.
func TestEventsOf(t *testing.T) {
	r := New()
	add := func(at int64, subject, kind string) {
		r.Event(Event{TimeNs: at, Source: SourceTap, Subject: subject, Kind: kind})
	}
	add(3, "a", KindOpen)
	add(1, "a", KindOpen)
	add(2, "b", KindOpen)
	add(4, "a", KindClose)
	r.Index()
	add(5, "a", KindOpen)
	for _, tt := range []struct {
		of   *Recording
		from string
		want []int64
	}{
		{r, "a", []int64{1, 3, 5}},
		{r, "b", []int64{2}},
		{r, "", []int64{1, 2, 3, 5}},
		{r, "c", nil},
		{r.Without(SourceProbe), "a", []int64{1, 3, 5}},
		{r.Without(SourceTap), "a", nil},
	} {
		var got []int64
		for _, e := range tt.of.EventsOf(SourceTap, tt.from, KindOpen) {
			got = append(got, e.TimeNs)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("of %q: %v, want %v", tt.from, got, tt.want)
		}
	}
}

// TestFilesBeside: SQLite would take files of others that lie beside a recording for its own.
func TestFilesBeside(t *testing.T) {
	for _, beside := range []string{"-journal", "-wal", "-shm"} {
		path := filepath.Join(t.TempDir(), "x.slowpath")
		victim := path + ".victim"
		if err := os.Symlink(victim, path+beside); err != nil {
			t.Fatal(err)
		}
		w, err := Create(path, 0)
		if err == nil {
			w.Close()
			t.Errorf("%s is used", beside)
		}
		for _, name := range []string{path, victim} {
			if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
