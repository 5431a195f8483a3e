package python

import (
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/profile/interpreter"
)

// BenchmarkStacks reads one stack of testdata/threads.py per operation: of an event loop that is blocked (13 frames in
// 3.11, of which 2 are coroutines), a thread that sleeps, one that spins and holds the GIL, and one of 64 frames and
// more; all of them at once. Its frames/op are those of a stack.
func BenchmarkStacks(b *testing.B) {
	needs.Real(b, debianPython)
	p := start(b, nil)
	run := func(name string, tids []int) {
		b.Run(name, func(b *testing.B) {
			var s interpreter.Sample
			frames := 0
			b.ReportAllocs()
			for range b.N {
				if err := p.Stacks(tids, &s); err != nil {
					b.Fatal(err)
				}
				for _, stack := range s.Stacks {
					frames += len(stack.Frames)
				}
			}
			b.ReportMetric(float64(frames)/float64(b.N), "frames/op")
		})
	}
	for _, name := range []string{"loop", "wait", "spin", "deep", "main"} {
		run(name, []int{p.Threads[name]})
	}
	run("all", p.TIDs())
}

// BenchmarkOpen is what a process costs once.
func BenchmarkOpen(b *testing.B) {
	needs.Real(b, debianPython)
	p := start(b, nil)
	b.ReportAllocs()
	for range b.N {
		q, err := Language.Open(hostfs.Root{}, p.PID)
		if err != nil {
			b.Fatal(err)
		}
		q.Close()
	}
}
