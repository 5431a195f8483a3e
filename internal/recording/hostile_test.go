package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// open opens a recording, which must not take long.
func open(t *testing.T, path string) (*Recording, error) {
	t.Helper()
	type result struct {
		rec *Recording
		err error
	}
	opened := make(chan result, 1)
	go func() { rec, err := Open(path); opened <- result{rec, err} }()
	select {
	case r := <-opened:
		return r.rec, r.err
	case <-time.After(time.Minute):
		t.Fatal("it is read without end")
	}
	return nil, nil
}

// TestHostileRows: rows that no source writes are left out, counted and said; the others are read.
func TestHostileRows(t *testing.T) {
	for name, change := range map[string]string{
		"a call that ends never":        "UPDATE call SET end_ns = 9223372036854775807 WHERE id = 2",
		"a call that ends before it":    "UPDATE call SET end_ns = intended_ns - 1000000000 WHERE id = 2",
		"a call before the epoch":       "UPDATE call SET intended_ns = -9223372036854775808 WHERE id = 2",
		"a call of text":                "UPDATE call SET start_ns = 'x' WHERE id = 2",
		"a call without a source":       "UPDATE call SET source = NULL WHERE id = 2",
		"a segment without end":         "UPDATE segment SET to_ns = 9223372036854775807 WHERE call_id = 2",
		"an event that lasts for ever":  "UPDATE event SET duration_ns = 9223372036854775807 WHERE rowid = 2",
		"an event of negative duration": "UPDATE event SET duration_ns = -1000000000 WHERE rowid = 2",
		"an endless sample":             "UPDATE sample SET value = 9e999 WHERE rowid = 2",
		"a sample that is no number":    "UPDATE sample SET value = NULL WHERE rowid = 2",
		"a histogram of the far future": "UPDATE histogram SET second = 9223372036854775807 WHERE rowid = 2",
		"a snapshot of the far future":  "UPDATE snapshot SET time_ns = 9223372036854775807 WHERE rowid = 2",
		"a profile without a time":      "UPDATE profile SET time_ns = NULL WHERE rowid = 2",
		"a watch that ends never":       "UPDATE meta SET value = '9223372036854775807' WHERE key = 'end_ns'",
		"a watch that ends before it":   "UPDATE meta SET value = '1' WHERE key = 'end_ns'",
	} {
		t.Run(name, func(t *testing.T) {
			path := small(t)
			execIn(t, path, change)
			r, err := open(t, path)
			if err != nil {
				t.Fatal(err)
			}
			rows := len(r.Calls) + len(r.segments) + len(r.Histograms) + len(r.Snapshots) + len(r.Profiles) +
				len(r.Series(SourceServer, "a:1", "n")) + len(r.EventsOf(SourceHost, "a:1", KindFrozen))
			if want := 7*3 - 1; rows != want && !strings.Contains(change, "meta") {
				t.Errorf("%d rows, want %d", rows, want)
			}
			if start, end := r.Window(); end < start || end-start > int64(time.Minute) {
				t.Errorf("it lasts from %d to %d", start, end)
			}
			said := r.EventsOf(SourceRecording, SubjectSelf, KindBlindSpot)
			if len(said) != 1 || !strings.Contains(said[0].Detail, `"1 row of the recording"`) {
				t.Errorf("%+v", said)
			}
		})
	}
}

// TestHostileBegin: a begin that is no time is refused.
func TestHostileBegin(t *testing.T) {
	for _, begin := range []string{"9223372036854775807", "-1", "0", "soon"} {
		path := small(t)
		execIn(t, path, "UPDATE meta SET value = '"+begin+"' WHERE key = 'start_ns'")
		if _, err := open(t, path); !errors.Is(err, ErrNotRecording) || !strings.Contains(err.Error(), "is no time") {
			t.Errorf("%s: %v", begin, err)
		}
	}
}

// small makes a recording with three rows in each table.
func small(t testing.TB) string {
	t.Helper()
	path := file(t)
	w := create(t, path, 0)
	at := time.Now().UnixNano()
	w.SetMeta(MetaStart, fmt.Sprint(at))
	w.SetMeta(MetaEnd, fmt.Sprint(at+10e9))
	for i := range int64(3) {
		at := at + i*1e9
		w.Call(Call{Source: SourceProbe, Op: "PING", IntendedNs: at, StartNs: at, EndNs: at + 1e6, Node: "a:1"},
			Segment{Actor: "server", State: "exec", FromNs: at, ToNs: at + 1e6})
		w.Event(Event{TimeNs: at, DurationNs: 1, Source: SourceHost, Subject: "a:1", Kind: KindFrozen})
		w.Histogram(Histogram{Second: at / 1e9, Source: SourceProbe, Node: "a:1", Op: "kept PING"})
		w.Sample(Sample{TimeNs: at, Source: SourceServer, Subject: "a:1", Name: "n", Value: 1})
		w.Snapshot(Snapshot{TimeNs: at, Source: SourceServer, Subject: "a:1", Name: "config"})
		w.Profile(Profile{TimeNs: at, Subject: "a:1", Kind: "cpu"})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func execIn(t *testing.T, path, change string) {
	t.Helper()
	db, err := openDB(path, "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := execute(db, change); err != nil {
		t.Fatal(err)
	}
}

// TestPagesInACircle: pages that are named again and again would make rows without end. They are read once.
func TestPagesInACircle(t *testing.T) {
	const rows, interior = 5000, 5 // the type of a page that has no rows, only children
	path := file(t)
	w := create(t, path, 0)
	for i := range int64(rows) {
		w.Sample(Sample{TimeNs: i, Source: SourceServer, Subject: "a:1", Name: "n", Value: float64(i)})
	}
	w.Close()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for page := 4096; page < len(body); page += 4096 {
		cells := int(binary.BigEndian.Uint16(body[page+3:]))
		if body[page] != interior || cells < 3 {
			continue
		}
		child := func(i int) []byte { // https://www.sqlite.org/fileformat2.html#b_tree_pages
			at := int(binary.BigEndian.Uint16(body[page+12+2*i:]))
			return body[page+at : page+at+4]
		}
		for i := 1; i < cells; i++ {
			copy(child(i), child(0))
			changed++
		}
	}
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := open(t, path)
	if err != nil || changed == 0 {
		t.Fatalf("%d pages, %v", changed, err)
	}
	n := len(r.Series(SourceServer, "a:1", "n"))
	said := r.EventsOf(SourceRecording, SubjectSelf, KindBlindSpot)
	if n == 0 || n > rows/changed*2 || len(said) != 1 || !strings.Contains(said[0].Detail, "(tables sample)") {
		t.Errorf("%d of %d samples on %d pages, %+v", n, rows, changed, said)
	}
}
