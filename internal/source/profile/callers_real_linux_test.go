package profile

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"slowpath/internal/clock"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// TestCallersInLanguages: where the threads of programs are is seen while they compute and while they wait, and which
// of them has the lock. A process in another language is left alone.
func TestCallersInLanguages(t *testing.T) {
	needs.Real(t, needs.Root, needs.Python, needs.Command("/usr/bin/ruby", "ruby"))
	for _, l := range []struct{ kind, interpreter, file, program, renders, main, waits string }{
		{recording.ProfilePython, "/usr/bin/python3", "shop.py", `import threading, time
def render():
    while True: sum(range(1000))
def waits():
    threading.Event().wait(timeout=3600)
threading.Thread(target=waits, daemon=True).start()
render()
`, "render (shop.py:3)", "module (shop.py:7)", "waits (shop.py:5)"},
		{recording.ProfileRuby, "/usr/bin/ruby", "shop.rb", `def render
  while true do (1..1000).each { |i| i + 1 } end
end
def waits
  sleep 3600
end
Thread.new { waits }
render
`, "render (shop.rb:2)", "main (shop.rb:8)", "waits (shop.rb:5)"},
	} {
		t.Run(l.kind, func(t *testing.T) {
			seesCaller(t, l.kind, l.interpreter, l.file, l.program, l.renders, l.main, l.waits)
		})
	}
}

func seesCaller(t *testing.T, kind, interpreter, name, text, renders, main, waits string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program, other := exec.CommandContext(t.Context(), interpreter, file), exec.CommandContext(t.Context(),
		"sleep", "3600")
	for _, c := range []*exec.Cmd{program, other} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	}
	sink := &locked{rec: recording.New()}
	ctx, cancel := context.WithCancel(t.Context())
	var others atomic.Int64
	callers := NewCallers(Options{Clock: clock.New(), Sink: sink}, func(pid int) { others.Store(int64(pid)) })
	ended := make(chan error)
	go func() { ended <- callers.Run(ctx) }()
	callers.Found(other.Process.Pid)
	seen := func() (computes, sleeps bool) {
		callers.Found(program.Process.Pid) // it may not have started yet
		sink.do(func() {
			for _, p := range sink.rec.Profiles {
				read, err := stacks.Read(p.Pprof)
				if err != nil || p.Kind != kind {
					t.Errorf("%s: %v", p.Kind, err)
				}
				holds := read.Column("holds_lock")
				for _, s := range read.Stacks {
					in := func(frame string) bool { return slices.Contains(s.Frames, frame) }
					computes = computes || in(renders) && in(main) && s.Values[holds] == 1
					sleeps = sleeps || in(waits) && s.Values[holds] == 0
				}
			}
		})
		return computes, sleeps
	}
	await.Until(t, "samples of both threads", func() bool {
		computes, sleeps := seen()
		return computes && sleeps && others.Load() == int64(other.Process.Pid)
	})
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if spots := blindSpots(sink.rec); len(spots) > 0 {
		t.Errorf("of two processes and two threads: %+v", spots)
	}
}

func blindSpots(rec *recording.Recording) (spots []recording.Event) {
	for _, e := range rec.Events {
		if e.Kind == recording.KindBlindSpot {
			spots = append(spots, e)
		}
	}
	return spots
}

// TestCallersAreBounded: more programs than are sampled, and more threads than that, are said.
func TestCallersAreBounded(t *testing.T) {
	needs.Real(t, needs.Root, needs.Python)
	const program = `import threading
for _ in range(40): threading.Thread(target=threading.Event().wait, args=(3600,), daemon=True).start()
print("ready", flush=True)
threading.Event().wait(3600)
`
	python := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", program)
	out, err := python.StdoutPipe()
	if err == nil {
		err = python.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = python.Process.Kill(); _ = python.Wait() })
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	sleep := exec.CommandContext(t.Context(), "sleep", "3600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleep.Process.Kill(); _ = sleep.Wait() })
	sink := &locked{rec: recording.New()}
	others := 0
	c := NewCallers(Options{Clock: clock.New(), Sink: sink}, func(int) { others++ })
	defer c.close()
	for range maxCallers + 2 {
		c.Found(sleep.Process.Pid)
	}
	c.Found(python.Process.Pid)
	c.open()
	a := c.apps[python.Process.Pid]
	if a == nil || others != maxCallers {
		t.Fatalf("%v, %d others", a, others)
	}
	for at := range int64(3) {
		if err := c.read(a, python.Process.Pid, 1+at*int64(threadsEvery)); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.threads) != maxCallerThreads ||
		a.threads[0] != python.Process.Pid || len(blindSpots(sink.rec)) != 2 {
		t.Errorf("%d threads, blind spots %+v", len(a.threads), blindSpots(sink.rec))
	}
}
