package incidents_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/incidents"
)

func history(t testing.TB, path string, keep time.Duration, most int64) *incidents.History {
	t.Helper()
	h, err := incidents.OpenHistory(foldertest.Open(t, filepath.Dir(path)), filepath.Base(path), keep, most)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func add(t testing.TB, h *incidents.History, all ...incidents.Minute) {
	t.Helper()
	for _, m := range all {
		if err := h.Add(m); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHistory: minutes come back as they were added, in order, the last one of each, also after a restart.
func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	h := history(t, path, 0, 0)
	now := time.Now().Unix() / 60 * 60
	b := incidents.Minute{
		Start: now, Node: "b", Calls: 1200, Slow: 3, Failed: 1, P50Ns: 5e5, P99Ns: 9e6, MaxNs: 1 << 40,
		ThresholdNs: 5e6, Complete: true, AtServer: true,
		HDR: []byte("hdr"),
	}
	own := incidents.Minute{Start: now, Node: "a", Own: true, Calls: 60}
	a := incidents.Minute{Start: now, Node: "a", Calls: 7}
	early := incidents.Minute{Start: now - 60, Node: "b"}
	wrong := a
	wrong.Calls = 99
	add(t, h, b, own, wrong, a, early)
	for _, h := range []*incidents.History{h, history(t, path, 0, 0)} {
		got, err := h.Minutes(now-60, now+60)
		if err != nil || !reflect.DeepEqual(got, []incidents.Minute{early, a, own, b}) {
			t.Errorf("%v, got %+v", err, got)
		}
		if got, err := h.Minutes(now-60, now); err != nil || len(got) != 1 {
			t.Errorf("%v, got %+v", err, got)
		}
	}
	for _, bad := range []incidents.Minute{
		{}, {Start: 61, Node: "a"}, {Start: 60}, {Start: 60, Node: "a", HDR: make([]byte, 1<<20)},
	} {
		if err := h.Add(bad); !errors.Is(err, incidents.ErrBadMinute) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestHistoryIsBounded: by age and by bytes; the newest minutes stay.
func TestHistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still
		path := filepath.Join(t.TempDir(), "history.db")
		const most = 1 << 20
		h := history(t, path, 0, most)
		now := time.Now().Unix() / 60 * 60
		hdr := bytes.Repeat([]byte("0123456789"), 50)
		for i := range int64(2500) { // 1.3 MB
			add(t, h, incidents.Minute{Start: now + (i-2500)*60, Node: "a", HDR: hdr})
		}
		var size int64
		for _, end := range []string{"", "-wal", "-shm"} {
			if st, err := os.Stat(path + end); err == nil {
				size += st.Size()
			}
		}
		got, err := h.Minutes(0, now)
		if err != nil || size > most+512<<10 || len(got) < 500 || got[len(got)-1].Start != now-60 {
			t.Errorf("%v: %d bytes, %d minutes", err, size, len(got))
		}
		h.Close()
		h = history(t, path, time.Hour, most)
		if got, err := h.Minutes(0, now); err != nil || len(got) != 61 {
			t.Errorf("%v: %d minutes of an hour", err, len(got))
		}
	})
}

// TestDamagedHistory: it gets another name, which is said, and another one begins.
func TestDamagedHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	h := history(t, path, 0, 0)
	add(t, h, incidents.Minute{Start: 60, Node: "a"})
	if _, err := os.Stat(path + ".damaged"); err != nil || !strings.Contains(h.Note(), ".damaged") {
		t.Errorf("%v, said %q", err, h.Note())
	}
	link := filepath.Join(t.TempDir(), "history.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := incidents.OpenHistory(foldertest.Open(t, filepath.Dir(link)), "history.db", 0, 0); err == nil {
		t.Error("a link is followed")
	}
}

// BenchmarkHistory is what seven days of eight nodes take, and how long it is until they are read.
func BenchmarkHistory(b *testing.B) {
	path := filepath.Join(b.TempDir(), "history.db")
	h := history(b, path, 0, 0)
	now := time.Now().Unix() / 60 * 60
	hdr := bytes.Repeat([]byte("0123456789"), 40) // about as long as one is
	const days, nodes = 7, 8
	n := 0
	for start := now - days*86400; start < now; start += 60 {
		for node := range nodes {
			for _, own := range []bool{false, true} {
				n++
				add(b, h, incidents.Minute{
					Start: start, Node: fmt.Sprint("10.0.0.", node, ":6379"), Own: own, Calls: 1e6,
					P99Ns: 1e6, HDR: hdr,
				})
			}
		}
	}
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	for name, hdrs := range map[string]bool{"with histograms": true, "numbers": false} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				got := 0
				if err := h.Each(0, now, hdrs, func(incidents.Minute) { got++ }); err != nil || got != n {
					b.Fatal(err, got, n)
				}
			}
			b.ReportMetric(float64(st.Size())/days/1e6, "MB/day")
		})
	}
}

// TestEntries: they have numbers that grow, come back in order, also after a restart, and go with the minutes of their
// time.
func TestEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "history.db")
		h := history(t, path, time.Hour, 0)
		edge := func(calls int64) incidents.Entry {
			return incidents.Entry{Edge: &incidents.Edge{Caller: "app[7]", Node: "a:1", Calls: calls}}
		}
		tooLarge := incidents.Entry{Change: &incidents.Change{Text: strings.Repeat("x", 1<<20)}}
		err := errors.Join(h.AddEntries([]incidents.Entry{edge(1), tooLarge, edge(2)}), h.Close())
		h = history(t, path, time.Hour, 0)
		err = errors.Join(err, h.AddEntries([]incidents.Entry{{Change: &incidents.Change{Text: "restart"}}}))
		all, err2 := h.EntriesAfter(0, 10)
		if errors.Join(err, err2) != nil || len(all) != 3 || all[0].Edge.Calls != 1 || all[1].Edge.Calls != 2 ||
			all[2].Change.Text != "restart" || all[0].At >= all[1].At || all[1].At >= all[2].At {
			t.Fatalf("%+v %v %v", all, err, err2)
		}
		if some, err := h.EntriesAfter(all[0].At, 1); err != nil || len(some) != 1 || some[0].Edge.Calls != 2 {
			t.Errorf("%+v %v", some, err)
		}
		<-time.After(2 * time.Hour)
		add(t, h, incidents.Minute{Start: time.Now().Unix() / 60 * 60, Node: "a"})
		h = history(t, path, time.Hour, 0) // which removes what is old
		if all, err := h.EntriesAfter(0, 10); err != nil || len(all) != 0 {
			t.Errorf("%+v %v", all, err)
		}
	})
}
