package stacks

import (
	"bytes"
	"compress/gzip"
	"errors"
	"reflect"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"

	"slowpath/internal/house/await"
)

var small = &Profile{
	Types: []Type{{"contentions", "count"}, {"delay", "nanoseconds"}},
	Stacks: []Stack{
		{Frames: []string{"main.main", "lib.Get", "sync.(*Mutex).Lock"}, Values: []int64{2, 700}},
		{Frames: []string{"main.main", "lib.Put"}, Values: []int64{1, 300}},
	},
}

func written(t testing.TB, p *Profile) []byte {
	t.Helper()
	b, err := Write(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWriteThenRead(t *testing.T) {
	got, err := Read(written(t, small))
	if err != nil || !reflect.DeepEqual(got, small) {
		t.Errorf("%+v, %v", got, err)
	}
	if got.Column("delay") != 1 || got.Column("cpu") != -1 || got.Total(1) != 1000 || got.Total(-1) != 0 {
		t.Errorf("columns of %+v", got)
	}
}

func TestReadRefuses(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range MaxBytes>>20 + 1 {
		_, _ = z.Write(make([]byte, 1<<20))
	}
	z.Close()
	for name, body := range map[string][]byte{
		"a web page":         []byte("<html>not found</html>"),
		"half a gzip":        written(t, small)[:40],
		"megabytes of zeros": bomb.Bytes(),
		"too long":           make([]byte, MaxBytes+1),
	} {
		if _, err := Read(body); !errors.Is(err, ErrNotProfile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGrowthAndSum(t *testing.T) {
	after := &Profile{Types: small.Types, Stacks: []Stack{
		{Frames: small.Stacks[0].Frames, Values: []int64{5, 1700}},
		{Frames: small.Stacks[1].Frames, Values: []int64{1, 300}},
	}}
	grown, err := Growth(written(t, small), written(t, after))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Read(grown)
	if err != nil || len(p.Stacks) != 1 || p.Total(0) != 3 || p.Total(1) != 1000 {
		t.Errorf("growth %+v, %v", p, err)
	}
	sum, err := Sum(written(t, small), written(t, after))
	if err != nil {
		t.Fatal(err)
	}
	if p, err = Read(sum); err != nil || len(p.Stacks) != 2 || p.Total(1) != 3000 {
		t.Errorf("sum %+v, %v", p, err)
	}
	if _, err := Growth([]byte("x"), written(t, small)); !errors.Is(err, ErrNotProfile) {
		t.Error(err)
	}
}

// TestOwnGoroutines: what this Go toolchain calls the frames of a goroutine that waits for a mutex is what the table
// has.
func TestOwnGoroutines(t *testing.T) {
	var mu sync.Mutex
	var once sync.Once
	mu.Lock()
	var ended sync.WaitGroup
	wait := func() {
		mu.Lock()
		defer mu.Unlock()
	}
	ended.Go(wait)
	ended.Go(func() { once.Do(wait) })
	defer ended.Wait()
	defer mu.Unlock()
	await.Until(t, "both wait for the mutex", func() bool {
		var b bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&b, 0); err != nil {
			t.Fatal(err)
		}
		p, err := Read(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		waiting := int64(0)
		for _, s := range p.Stacks {
			if m, ok := Builtin().Of(s.Frames); ok && m.ID == "go-mutex" {
				waiting += s.Values[0]
			}
		}
		return waiting == 2
	})
}

func TestCollapse(t *testing.T) {
	var b strings.Builder
	p := &Profile{Types: []Type{{"n", "count"}}, Stacks: []Stack{
		{Frames: []string{"main.main", "a;b"}, Values: []int64{2}}, {
			Frames: []string{"main.main", "a;b"},
			Values: []int64{3},
		}, {Frames: []string{"main.main"}, Values: []int64{0}},
	}}
	if err := Collapse(&b, p, 0); err != nil || b.String() != "main.main;a:b 5\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestGraph(t *testing.T) {
	g := Graph(small, 1)
	if g.Value != 1000 || len(g.Below) != 1 || g.Below[0].Value != 1000 || len(g.Below[0].Below) != 2 ||
		g.Below[0].Below[0].Name != "lib.Get" || g.Below[0].Below[0].Value != 700 {
		t.Errorf("%+v", g)
	}
}

// FuzzRead: whatever comes from an address is read or refused; what is read can be written, collapsed and drawn.
func FuzzRead(f *testing.F) {
	f.Add(written(f, small))
	var b bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&b, 0)
	f.Add(b.Bytes())
	f.Add([]byte("goroutine profile: total 5\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := Read(body)
		if err != nil {
			if !errors.Is(err, ErrNotProfile) {
				t.Error(err)
			}
			return
		}
		for _, s := range p.Stacks {
			if len(s.Values) != len(p.Types) || len(s.Frames) > maxFrames {
				t.Errorf("%d values, %d frames", len(s.Values), len(s.Frames))
			}
			Builtin().Of(s.Frames)
		}
		Graph(p, 0)
		if _, err := Growth(body, body); err != nil && !strings.Contains(err.Error(), "profiles") {
			t.Error(err)
		}
	})
}

// TestTimes: the time of a stack is kept when it is written and read, moved to another clock, and left out of sums, so
// that equal stacks become one.
func TestTimes(t *testing.T) {
	timed := &Profile{Types: []Type{{"samples", "count"}}, Stacks: []Stack{
		{Frames: []string{"a"}, Values: []int64{1}, TimeNs: 1700000000000000001},
		{Frames: []string{"a"}, Values: []int64{1}, TimeNs: 1700000000000000002},
	}}
	body := written(t, timed)
	if p, err := Read(body); err != nil || !reflect.DeepEqual(p, timed) {
		t.Errorf("%+v, %v", p, err)
	}
	moved, err := Move(body, func(at int64) int64 { return at + 5 })
	if err != nil {
		t.Fatal(err)
	}
	if p, err := Read(moved); err != nil || p.Stacks[0].TimeNs != 1700000000000000006 {
		t.Errorf("%+v, %v", p, err)
	}
	sum, err := Sum(body, moved)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := Read(sum); err != nil || len(p.Stacks) != 1 || p.Stacks[0].TimeNs != 0 || p.Total(0) != 4 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := Move([]byte("x"), nil); !errors.Is(err, ErrNotProfile) {
		t.Error(err)
	}
}

func TestTop(t *testing.T) {
	p := &Profile{Types: []Type{{"n", "count"}}, Stacks: []Stack{
		{Frames: []string{"main", "f", "f"}, Values: []int64{5}},
		{Frames: []string{"main", "g"}, Values: []int64{7}},
		{Frames: []string{"main"}, Values: []int64{-1}},
	}}
	want := []Function{{"g", 7, 7}, {"f", 5, 5}}
	if got := Top(p, 0, 9); !reflect.DeepEqual(got, want) || len(Top(p, 0, 1)) != 1 || len(Top(p, -1, 9)) != 0 {
		t.Errorf("%+v", got)
	}
}
