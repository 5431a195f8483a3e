package ring_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/ring"
	"slowpath/internal/recording"
)

// TestKilled: of a ring whose process is killed at most the last second is missing: its files have the rest already.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, killed := t.TempDir(), t.TempDir()
		r, c, _ := opened(t, dir, ring.Options{Each: 300 * time.Millisecond})
		began := time.Now()
		for i := range 3200 {
			c.ns.Store(startNs + time.Since(began).Nanoseconds())
			one := call(c.Now())
			one.ArgCount = i
			r.Call(one)
			<-time.After(time.Millisecond)
		}
		if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		r, _, _ = openedAt(t, killed, startNs+4e9, ring.Options{})
		rec := saved(t, r, 0, 4)
		if len(rec.Calls) < 2200 || len(rec.Calls) == 3200 {
			t.Errorf("%d calls are there, of 2200 that were older than a second, and of 3200", len(rec.Calls))
		}
		for i, c := range rec.Calls {
			if c.ArgCount != i {
				t.Fatalf("call %d is the one of number %d", i, c.ArgCount)
			}
		}
	})
}

// TestCallsOfATime: all calls that ended in a time are read, from files and from memory, and no others.
func TestCallsOfATime(t *testing.T) {
	r, c, _ := opened(t, t.TempDir(), ring.Options{})
	for i := range int64(4000) {
		c.ns.Store(startNs + i*5e6)
		one := call(c.Now())
		one.ArgCount = int(i)
		r.Call(one, recording.Segment{
			Actor: recording.Server, State: recording.Exec, FromNs: one.StartNs, ToNs: one.EndNs,
		})
	}
	next := 1000
	err := r.Calls(t.Context(), time.Unix(0, startNs+5e9), time.Unix(0, startNs+18e9),
		func(c recording.Call, segs ...recording.Segment) {
			if c.ArgCount != next || len(segs) != 1 {
				t.Fatalf("call %d comes after %d, with %d segments", c.ArgCount, next-1, len(segs))
			}
			next++
		})
	if err != nil || next != 3600 {
		t.Errorf("%d calls, %v", next-1000, err)
	}
}

// TestBoundsOfTheRing: the files never have more bytes than they may, and go when there is enough that is newer.
func TestBoundsOfTheRing(t *testing.T) {
	dir := t.TempDir()
	const most = 8 << 20
	r, c, _ := opened(t, dir, ring.Options{MaxBytes: most, Keep: time.Hour})
	noise := rand.New(rand.NewPCG(1, 2))
	body := make([]byte, 10_000)
	for i := range int64(2000) { // 20 MB that cannot be packed
		c.ns.Store(startNs + i*10e6)
		for j := range body {
			body[j] = byte(noise.Uint32())
		}
		r.Profile(recording.Profile{TimeNs: c.Now(), Pprof: body})
		if i%20 != 0 {
			continue
		}
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		if n := bytesIn(t, dir); n > most {
			t.Fatalf("%d bytes", n)
		}
	}
	s := r.Status()
	if s.Bytes < most/2 || s.Lost > 0 || !s.From.After(time.Unix(0, startNs)) {
		t.Errorf("%+v", s)
	}

	dir = t.TempDir()
	r, c, _ = opened(t, dir, ring.Options{Keep: 3 * time.Second})
	for i := range int64(40) {
		c.ns.Store(startNs + i*500e6)
		r.Call(call(c.Now()))
		_ = r.Flush()
	}
	if s := r.Status(); s.To.Sub(s.From) < 3*time.Second || s.To.Sub(s.From) > 6*time.Second {
		t.Errorf("%v are kept", s.To.Sub(s.From))
	}
}

func bytesIn(t *testing.T, dir string) (n int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if st, err := e.Info(); err == nil {
			n += st.Size()
		}
	}
	return n
}

// TestForeignFilesInTheRing: what is no file of the ring is left alone; what is damaged is set aside, and the rest is
// read.
func TestForeignFilesInTheRing(t *testing.T) {
	dir := t.TempDir()
	r, c, _ := opened(t, dir, ring.Options{})
	for i := range int64(12) {
		c.ns.Store(startNs + i*500e6)
		r.Call(call(c.Now()))
		_ = r.Flush()
	}
	r.Close()
	names, err := filepath.Glob(filepath.Join(dir, "*.ring"))
	if err != nil || len(names) < 4 {
		t.Fatal(names, err)
	}
	damage := func(name string, f func([]byte) []byte) {
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, f(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	damage(names[1], func(b []byte) []byte { b[len(b)-1] ^= 1; return b })     // a bit of its last block
	damage(names[2], func(b []byte) []byte { return b[:len(b)-3] })            // cut
	damage(names[3], func([]byte) []byte { return []byte("SQLite format 3") }) // no ring
	secret := filepath.Join(t.TempDir(), "secret")
	for _, err := range []error{
		os.WriteFile(secret, []byte("keep"), 0o600), os.Symlink(secret, filepath.Join(dir, "000000000099.ring")),
		os.Mkdir(filepath.Join(dir, "000000000098.ring"), 0o700),
		os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600),
		syscall.Mkfifo(filepath.Join(dir, "000000000097.ring"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r, _, log := openedAt(t, dir, startNs+10e9, ring.Options{})
	if log.count("it is now") != 1 || log.count("no whole block") != 1 || log.count("4 files") != 1 {
		t.Errorf("said: %q", log.all)
	}
	rec := saved(t, r, 0, 7)
	if n := len(rec.Calls); n < 6 || n > 11 {
		t.Errorf("%d of 12 calls", n)
	}
	found := false
	for _, e := range rec.Events {
		found = found || e.Kind == recording.KindBlindSpot && strings.Contains(e.Detail, filepath.Base(names[1]))
	}
	if !found {
		t.Error("the damage is no blind spot of the recording")
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "keep" {
		t.Errorf("a file outside was changed: %q %v", b, err)
	}
}

func TestTooSmall(t *testing.T) {
	if _, err := ring.Open(ring.Options{Folder: foldertest.Open(t, t.TempDir()), MaxBytes: 1000}); err == nil {
		t.Error("a bound that holds nothing is an error")
	}
}

// TestSaveReplacesNothing: neither a file that is there, nor through a link.
func TestSaveReplacesNothing(t *testing.T) {
	r, _, _ := opened(t, t.TempDir(), ring.Options{})
	r.Call(call(startNs + 1))
	path := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := saveAt(t, r, time.Unix(0, startNs-1e9), time.Unix(0, startNs+1e9), path)
	if b, _ := os.ReadFile(path); err == nil || string(b) != "mine" {
		t.Errorf("got %v, %q", err, b)
	}
}
