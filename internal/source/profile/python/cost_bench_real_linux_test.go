package python

import (
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/source/hostfs"
)

// BenchmarkStacks reads one stack of testdata/threads.py per operation: of an event loop that is blocked (13 frames in
// 3.11, of which 2 are coroutines), a thread that sleeps, one that spins and holds the GIL, and one of 64 frames and
// more; all of them at once. Its frames/op are those of a stack.
func BenchmarkStacks(b *testing.B) {
	needs.Real(b, debianPython)
	p := start(b, nil)
	all := []int{}
	for _, tid := range p.threads {
		all = append(all, tid)
	}
	run := func(name string, tids []int) {
		b.Run(name, func(b *testing.B) {
			var s Sample
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
		run(name, []int{p.threads[name]})
	}
	run("all", all)
}

// BenchmarkOpen is what a process costs once.
func BenchmarkOpen(b *testing.B) {
	needs.Real(b, debianPython)
	p := start(b, nil)
	b.ReportAllocs()
	for range b.N {
		q, err := Open(hostfs.Root{}, p.pid)
		if err != nil {
			b.Fatal(err)
		}
		q.Close()
	}
}
