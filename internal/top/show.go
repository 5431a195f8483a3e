package top

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"slowpath/internal/clock"
	"slowpath/internal/diagnose/account"
	"slowpath/internal/live"
	"slowpath/internal/live/accounting"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// Watch is what is shown of a watch: the view, the window that is judged, and the cost.
type Watch struct {
	View   *live.View
	Window *live.Window
	Meter  *Meter
	Clock  clock.Clock

	collector Collector
	judge     *Judge
	mu        sync.Mutex
	verdict   *Verdict
}

// NewWatch makes an empty one. slow is the slow threshold, 0: automatic.
func NewWatch(c clock.Clock, slow time.Duration, version string) *Watch {
	w := &Watch{
		View: live.New(live.Options{Slow: slow, Clock: c}), Window: live.NewWindow(c, 0), Meter: &Meter{}, Clock: c,
	}
	w.collector = Collector{View: w.View, Clock: c, Cost: w.Meter}
	w.judge = NewJudge(w.Window, c, version, w.slowCalls, w.judged)
	return w
}

// Sink is what the sources write into, beside a recording.
func (w *Watch) Sink(rec recording.ProfileSink) recording.ProfileSink {
	return live.Tee(rec, w.View, w.Window)
}

// Ask has the last seconds judged now.
func (w *Watch) Ask() { w.judge.Ask() }

func (w *Watch) slowCalls() uint64 {
	if calls := w.View.Slow(1); len(calls) > 0 {
		return calls[0].Number
	}
	return 0
}

func (w *Watch) judged(v Verdict, l *account.Ledger) {
	w.Meter.Verdict(v.Took)
	if l != nil {
		accounting.By(w.View, l)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.verdict = &v
}

// Frame is the state of the watch now.
func (w *Watch) Frame() Frame {
	begin := time.Now()
	f := w.collector.Frame()
	w.mu.Lock()
	f.Verdict = w.verdict
	w.mu.Unlock()
	w.Meter.Screen(time.Since(begin))
	return f
}

// afterSecond is how long after the begin of a second a frame is made: sources write then what they counted.
const afterSecond = 200 * time.Millisecond

// Frames gives show a frame each second, and judges in the background, until ctx ends or show fails.
func (w *Watch) Frames(ctx context.Context, show func(Frame) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var judging sync.WaitGroup
	judging.Go(func() { w.judge.Run(ctx) })
	defer judging.Wait()
	defer cancel()
	for {
		now := w.Clock.Now()
		next := time.Duration(1e9-(now-int64(afterSecond))%1e9) % time.Second
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(next, 10*time.Millisecond)):
		}
		if err := show(w.Frame()); err != nil {
			return err
		}
	}
}

// Terminal is where a screen is shown.
type Terminal struct {
	In, Out     *os.File
	Environment []string
	Style       layout.Style
	Height      int
}

// framesPerSecond is how often the terminal is written to at most, also where keys come faster.
const framesPerSecond = 10

// Show shows the watch on a terminal until a key or the end of ctx ends it.
func (w *Watch) Show(ctx context.Context, t Terminal, a Actions) error {
	a.Judge = w.Ask
	m := measured{NewModel(t.Style, t.Height, a), w.Meter}
	p := tea.NewProgram(m, tea.WithInput(t.In), tea.WithOutput(t.Out), tea.WithEnvironment(t.Environment),
		tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond))
	ctx, cancel := context.WithCancel(ctx)
	var frames sync.WaitGroup
	frames.Go(func() {
		_ = w.Frames(ctx, func(f Frame) error { p.Send(f); return nil })
		p.Send(Ending{})
	})
	_, err := p.Run()
	cancel()
	frames.Wait()
	if errors.Is(err, syscall.EIO) { // the terminal is gone, so that it can be neither asked nor restored
		return nil
	}
	return err
}

// measured counts the time that screens take.
type measured struct {
	Model
	meter *Meter
}

// Update implements tea.Model.
func (m measured) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	begin := time.Now()
	next, cmd := m.Model.Update(msg)
	m.meter.Screen(time.Since(begin))
	return measured{next.(Model), m.meter}, cmd
}

// View implements tea.Model.
func (m measured) View() tea.View {
	begin := time.Now()
	defer func() { m.meter.Screen(time.Since(begin)) }()
	return m.Model.View()
}

// Write prints frames by a function that formats them, until ctx ends.
func (w *Watch) Write(ctx context.Context, out io.Writer, text func(Frame) string) error {
	return w.Frames(ctx, func(f Frame) error {
		_, err := io.WriteString(out, text(f))
		return err
	})
}
