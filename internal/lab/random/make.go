package random

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
)

// Run is what was made and measured for one seed, and how its recording is judged.
type Run struct {
	Version  string               `json:"version"` // of the program that judged
	Seed     uint64               `json:"seed"`
	Only     servers.Name         `json:"only_server,omitempty"` // the only version that could be drawn
	Drawn    Drawn                `json:"scenario"`
	Truth    []Truth              `json:"truth"`    // the most expensive first
	Share    float64              `json:"share"`    // of the first truth
	First    string               `json:"first"`    // at T2: cause of the first finding, or the verdict without one
	Findings []Finding            `json:"findings"` // at T2
	Tiers    map[string]Judgement `json:"tiers"`
	Costs    []Cost               `json:"costs"` // of all faults
	Trials   []Trial              `json:"trials"`
	Watch    Watch                `json:"watch"`
	Seconds  float64              `json:"seconds"`
	Machine  string               `json:"machine,omitempty"` // on which it was made
	// CallerPID is the process of the callers that get the options of faults, where they have one.
	CallerPID int    `json:"caller_pid,omitempty"`
	Skipped   string `json:"skipped,omitempty"` // why this machine cannot make it
	Error     string `json:"error,omitempty"`
}

// Recorder records a target into a file for a time, as `slowpath record` does. The real one is a process of its own, so
// that the lab's load does not delay it.
type Recorder func(ctx context.Context, target []string, watch time.Duration, file string) error

// RecordProcess is the recorder that runs an executable of slowpath.
func RecordProcess(executable string) Recorder {
	return func(ctx context.Context, target []string, watch time.Duration, file string) error {
		args := append([]string{"record", "--for", watch.String(), "-o", file}, target...)
		c := exec.CommandContext(ctx, executable, args...)
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGINT) }
		c.WaitDelay = 5 * time.Second
		var said bytes.Buffer
		c.Stderr = &said
		if err := c.Run(); err != nil {
			return fmt.Errorf("record: %w: %s", err, bytes.TrimSpace(said.Bytes()))
		}
		return nil
	}
}

// When an Observer is asked.
type When string

// The times of a run.
const (
	Before When = "before" // the callers are there, and no fault is on
	During When = "during" // all faults are on, and half of the recording is made
	After  When = "after"  // no fault is on any more
)

// Seen is what an Observer may know of a run.
type Seen struct {
	Server, Target string // addresses: of the server, and what the callers dial
	TLS            bool
}

// Observer keeps what else there is to know of a run.
type Observer func(ctx context.Context, when When, seen Seen) error

// Maker makes drawn scenarios.
type Maker struct {
	Record  Recorder
	Observe Observer // nil: nobody
	Log     io.Writer
}

// Watch is what the callers measured while the recording was made, with all faults.
type Watch struct {
	Late   float64 `json:"late_share"`      // of operations that failed or were late by lateNs
	Long   float64 `json:"long_per_second"` // slices in which an operation failed or was late by longNs
	MeanNs float64 `json:"mean_ns"`         // of an operation
}

// Times of a run.
const (
	warmUp   = 700 * time.Millisecond // pools are filled, and runtimes compile
	longest  = 5 * time.Minute        // bounds a run, with the first build of a client program
	cleaning = 30 * time.Second
)

// Make makes the drawn scenario of a seed: it measures what the faults cost, and then records the callers with
// all faults on.
func (m Maker) Make(ctx context.Context, seed uint64, only servers.Name, file string) (r Run) {
	begin := time.Now()
	r = Run{Seed: seed, Only: only, Drawn: Draw(seed, only), Findings: []Finding{}, Machine: machine()}
	defer func() { r.Seconds = time.Since(begin).Seconds() }()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	l, err := scenario.New(r.Drawn.Server, m.Log)
	if err == nil {
		length, _ := r.Drawn.trialLength()
		err = m.run(ctx, &r, l, length, file)
		done, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
		defer cancel()
		step.Say(done, "cleaning up")
		if closing := l.Close(done); err == nil && closing != nil {
			err = fmt.Errorf("cleaning up: %w", closing)
		}
	}
	switch {
	case errors.Is(err, fault.ErrCannot):
		r.Skipped = err.Error()
	case err != nil:
		r.Error = err.Error()
	}
	return r
}

func (m Maker) run(ctx context.Context, r *Run, l *scenario.Lab, trial time.Duration, file string) error {
	s, err := build(ctx, l, r.Drawn)
	if err != nil {
		return err
	}
	if p, ok := s.callers[0].(process); ok {
		r.CallerPID = p.PID
	}
	if err := wait(ctx, warmUp); err != nil {
		return err
	}
	if r.Trials, err = s.play(ctx, r.Seed, trial); err != nil {
		return err
	}
	if err := m.observe(ctx, Before, s); err != nil {
		return err
	}
	all := 1<<len(s.drawn.Faults) - 1
	if err := s.set(ctx, all); err != nil {
		return err
	}
	watch := newTrial(all, len(s.drawn.Faults), time.Now())
	step.Say(ctx, "recording %s for %v", s.target[0], scenario.DefaultWatch)
	if err := m.record(ctx, s, file); err != nil {
		return err
	}
	watch.EndNs = time.Now().UnixNano()
	if err := s.set(ctx, 0); err != nil {
		return err
	}
	if err := m.observe(ctx, After, s); err != nil {
		return err
	}
	if err := s.measure(r.Trials, &watch); err != nil {
		return err
	}
	r.Watch = Watch{lateShare(watch), longPerSecond(watch), float64(watch.Ns) / float64(max(watch.Operations, 1))}
	r.decide()
	return nil
}

// record records a run, and has it observed meanwhile.
func (m Maker) record(ctx context.Context, s *stage, file string) error {
	observed := make(chan error, 1)
	go func() {
		if err := wait(ctx, scenario.DefaultWatch/2); err != nil {
			observed <- err
			return
		}
		observed <- m.observe(ctx, During, s)
	}()
	err := m.Record(ctx, s.target, scenario.DefaultWatch, file)
	return cmp.Or(err, <-observed)
}

// observe sets off the faults first where nobody may be there yet.
func (m Maker) observe(ctx context.Context, when When, s *stage) error {
	if m.Observe == nil {
		return nil
	}
	if when == Before {
		if err := s.set(ctx, 0); err != nil {
			return err
		}
	}
	return m.Observe(ctx, when, Seen{s.Server.Addr, s.addrs[0], s.TLS})
}

// decide sets the truth by what was measured.
func (r *Run) decide() {
	r.Costs = costs(r.Drawn.Faults, r.Trials, r.Drawn.workers())
	r.Truth = []Truth{{Cause: scenario.HealthyCause}}
	if r.noticedInWatch() {
		r.Truth = truth(r.Drawn.Faults, r.Costs)
	}
	r.Share = r.Truth[0].Share
}

// play makes the trials one after the other.
func (s *stage) play(ctx context.Context, seed uint64, length time.Duration) (trials []Trial, err error) {
	blocks := plan(seed, s.drawn.Faults)
	_, settles := s.drawn.trialLength()
	for i, block := range blocks {
		for k, set := range block {
			step.Say(ctx, "measuring what the faults cost: trial %d of %d", i*len(block)+k+1, len(blocks)*len(block))
			if err := s.set(ctx, set); err != nil {
				return nil, err
			}
			t := newTrial(set, len(s.drawn.Faults), time.Now())
			if settles > settling {
				t.SettlingNs = int64(settles)
			}
			if err := wait(ctx, length); err != nil {
				return nil, err
			}
			t.EndNs = time.Now().UnixNano()
			trials = append(trials, t)
		}
	}
	return trials, nil
}

// measure ends the callers and counts what they measured in the trials, and in the watch.
func (s *stage) measure(trials []Trial, watch *Trial) error {
	for _, c := range s.callers {
		measured, err := c.stop()
		if err != nil {
			return err
		}
		count(trials, watch, measured)
	}
	s.others.Slices = s.slices.Sums(time.Now())
	countLost(trials, s.others)
	return nil
}

// wait waits until the time is over or ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
