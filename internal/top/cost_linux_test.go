package top

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"slowpath/internal/clock"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/live"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// BenchmarkSecond is what top takes beside the watch, in percent of a core: CPU time for each second of recordings that
// have about 20 000 calls/s, healthy and during a scenario. rows: the view and the window take them; frame; screen:
// of 160x50. verdict is the CPU time of one, in milliseconds, of which the budget of a Judge allows so many.
func BenchmarkSecond(b *testing.B) {
	for _, scenario := range []string{"healthy-mixed", "server-cfs-throttled"} {
		b.Run(scenario, func(b *testing.B) {
			path := b.TempDir() + "/recording.slowpath"
			if err := corpus.Unpack(scenario, path); err != nil {
				b.Fatal(err)
			}
			rec, err := recording.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var spent [4]time.Duration
			seconds := 0
			for b.Loop() {
				seconds += costOf(b, rec, &spent)
			}
			b.ReportMetric(0, "ns/op")
			for i, name := range []string{"rows-%core", "frame-%core", "screen-%core"} {
				b.ReportMetric(100*spent[i].Seconds()/float64(seconds), name)
			}
			b.ReportMetric(float64(spent[3].Milliseconds())/float64(b.N), "verdict-ms")
		})
	}
}

// watched is how long a watch of the benchmark is: more than what frames are of.
const watched = 80 * time.Second

// costOf watches a recording once, adds the CPU time of each part, and returns its seconds.
func costOf(b *testing.B, rec *recording.Recording, spent *[4]time.Duration) (seconds int) {
	measure := func(part int, do func()) {
		begin := threadCPU()
		do()
		spent[part] += threadCPU() - begin
	}
	start, end := rec.Window()
	c := &hands{start}
	w := NewWatch(c, 0, "test")
	sink := live.Tee(w.View, w.Window)
	for k, v := range rec.Meta {
		sink.SetMeta(k, v)
	}
	var rows []timedRow
	span := time.Duration(end - start).Truncate(time.Second)
	for later := time.Duration(0); later < watched; later += span { // the same again and again
		rows = append(rows, rowsInOrder(rec, later)...)
	}
	runtime.GC() // what the rows above left is no part of it
	m := NewModel(layout.Style{Width: 160, Unicode: true, Color: true}, 50, Actions{})
	for at := start; at <= start+int64(watched); at += 1e9 {
		c.ns = at
		measure(0, func() {
			for len(rows) > 0 && rows[0].ns <= at {
				rows[0].put(sink)
				rows = rows[1:]
			}
		})
		var f Frame
		measure(1, func() { f = w.Frame() })
		measure(2, func() {
			next, _ := m.Update(f)
			m = next.(Model)
			_ = m.View()
		})
		seconds++
	}
	j := NewJudge(w.Window, clock.New(), "test", nil, nil)
	v, _, ok := j.judge()
	if !ok || v.Failed != "" {
		b.Fatal("not judged ", v.Failed)
	}
	spent[3] += v.Took
	return seconds
}

// BenchmarkTerminal is the CPU time of this process, in milliseconds, for each frame on a terminal of 160x50: the
// screen, and what of it is written since it has changed. One frame comes each 100 ms.
func BenchmarkTerminal(b *testing.B) {
	path := b.TempDir() + "/recording.slowpath"
	if err := corpus.Unpack("server-cfs-throttled", path); err != nil {
		b.Fatal(err)
	}
	rec, err := recording.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	frames := play(rec).frames
	out := &written{}
	p := tea.NewProgram(NewModel(layout.Style{Width: 160, Unicode: true, Color: true}, 50, Actions{}),
		tea.WithInput(nil), tea.WithOutput(out), tea.WithWindowSize(160, 50), tea.WithFPS(framesPerSecond),
		tea.WithEnvironment([]string{"TERM=xterm-256color"}), tea.WithoutSignalHandler())
	ended := make(chan error, 1)
	go func() { _, err := p.Run(); ended <- err }()
	p.Send(frames[0])
	runtime.GC()
	begin, shown := processCPU(), 0
	tick := time.NewTicker(time.Second / framesPerSecond)
	defer tick.Stop()
	for b.Loop() {
		for _, f := range frames {
			p.Send(f)
			<-tick.C
			shown++
		}
	}
	b.ReportMetric(float64((processCPU()-begin).Microseconds())/1000/float64(shown), "cpu-ms/frame")
	b.ReportMetric(float64(out.bytes.Load())/float64(shown), "bytes/frame")
	b.ReportMetric(0, "ns/op")
	p.Send(Ending{})
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// written counts bytes.
type written struct{ bytes atomic.Int64 }

func (w *written) Write(p []byte) (int, error) {
	w.bytes.Add(int64(len(p)))
	return len(p), nil
}
