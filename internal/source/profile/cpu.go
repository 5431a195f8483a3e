package profile

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/sampler"
	"slowpath/internal/source/profile/stacks"
)

// keepEvery is the time that one profile of the recording spans. If slowpath is killed, samples of at most that time
// are lost.
const keepEvery = 5 * time.Second

// kernelMark follows the names of kernel functions, as flamegraph.pl has it.
const kernelMark = "_[k]"

// Process is a process whose CPU time is sampled.
type Process struct {
	PID  int
	Node string // its address if it is a watched server, else empty
	Loop int    // the thread with its event loop; 0: not known
	// LoopOnly: no other thread is sampled.
	LoopOnly bool
	Runtime  string // "jvm" where it is known to be one
}

// CPU samples processes.
type CPU struct {
	Options
	sampler *sampler.Sampler // nil: the program could not be loaded,
	failed  error            // which says why
	mu      sync.Mutex       // of apps and what is in them
	apps    map[int]*sampled // by process
	offset  int64            // nanoseconds from the kernel's monotonic clock to the recording's
	cut     int64            // samples whose outermost callers were not found
	all     int64            // samples
}

// sampled is a process and its samples since the last keep.
type sampled struct {
	keeper *keeper
	what   recording.Profiled
	stacks []stacks.Stack
	ended  bool
}

// LoadCPU loads the program that samples processes. That it failed is what Start says.
func LoadCPU(o Options) *CPU {
	o = o.withDefaults()
	c := &CPU{Options: o, apps: map[int]*sampled{}}
	if c.offset, c.failed = offset(o.Clock); c.failed == nil {
		c.sampler, c.failed = sampler.Load(sampler.Options{FS: o.FS, Clock: o.Clock, Take: c.take, Blind: c.blind})
	}
	return c
}

// Forbidden reports whether the kernel lets this user sample nothing, whatever the processes.
func (c *CPU) Forbidden() bool { return errors.Is(c.failed, sampler.ErrPrivilege) }

// Start starts to sample processes of this host. Its error matches ErrTarget for a process that is not there,
// sampler.ErrPrivilege, sampler.ErrKernel or sampler.ErrLinux where the kernel does not allow it.
func (c *CPU) Start(processes []Process) error {
	var targets []sampler.Target
	for _, p := range processes {
		if c.apps[p.PID] != nil {
			continue
		}
		t, err := c.add(p)
		if err != nil {
			return err
		}
		targets = append(targets, t)
	}
	if c.failed != nil {
		return c.failed
	}
	return c.sampler.Start(targets)
}

// Follow samples a process in place of one that has ended, as of a server that was restarted, while Run runs. Its
// errors are those of Start.
func (c *CPU) Follow(ended int, p Process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.apps[ended]; a != nil {
		a.ended = true
	}
	if c.apps[p.PID] != nil {
		return nil
	}
	t, err := c.add(p)
	if err != nil {
		return err
	}
	c.apps[p.PID].describe()
	return c.sampler.Follow(t)
}

func (c *CPU) add(p Process) (t sampler.Target, err error) {
	comm, err := c.FS.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID))
	if err != nil {
		return t, fmt.Errorf("%w: there is no process %d on this host", ErrTarget, p.PID)
	}
	c.apps[p.PID] = &sampled{
		keeper: (&Source{Options: c.Options}).keeper(recording.ProcessPrefix + strconv.Itoa(p.PID)),
		what: recording.Profiled{
			PID: p.PID, Name: strings.TrimSpace(string(comm)), Node: p.Node, Loop: p.Loop, LoopOnly: p.LoopOnly,
			Runtime: p.Runtime,
		},
	}
	t.PID = p.PID
	if p.LoopOnly {
		t.TID = p.Loop
	}
	return t, nil
}

func (a *sampled) describe() { a.keeper.describe(a.what) }

// Close unloads what was not run.
func (c *CPU) Close() error {
	if c.sampler == nil {
		return nil
	}
	return c.sampler.Close()
}

// offset is what to add to a time of the kernel's monotonic clock to get one of the recording's.
func offset(c clock.Clock) (int64, error) {
	before := c.Now()
	kernel, err := clock.Monotonic()
	if err != nil {
		return 0, fmt.Errorf("reading the kernel's clock: %w", err)
	}
	return before + (c.Now()-before)/2 - kernel, nil
}

func (c *CPU) blind(pid int, what, why, enable string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.apps[pid]; a != nil {
		a.keeper.blind(fmt.Sprintf("%s (%s[%d])", what, a.what.Name, pid), why, enable)
		return
	}
	c.Sink.Event(recording.Event{
		TimeNs: c.Clock.Now(), Source: recording.SourceProfile, Subject: recording.SubjectSelf,
		Kind:   recording.KindBlindSpot,
		Detail: recording.Detail(recording.BlindSpot{What: what, Why: why, Enable: enable}),
	})
}

// take adds a sample: the thread's name, its functions from the outermost to the innermost, then those of the kernel.
func (c *CPU) take(s sampler.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.apps[s.PID]
	if a == nil {
		return
	}
	c.all++
	frames := append([]string{s.Thread}, s.User...)
	if s.Cut {
		c.cut++
		frames = append([]string{s.Thread, "[callers not found]"}, s.User...)
	}
	for _, f := range s.Kernel {
		frames = append(frames, f+kernelMark)
	}
	a.stacks = append(a.stacks, stacks.Stack{
		Frames: frames, Values: []int64{1, int64(s.CPU)},
		TimeNs: s.TimeNs + c.offset, TID: int64(s.TID),
	})
}

// Run samples until ctx ends.
func (c *CPU) Run(ctx context.Context) error {
	defer c.sampler.Close()
	c.mu.Lock()
	for _, a := range c.apps {
		a.describe()
	}
	c.mu.Unlock()
	for ctx.Err() == nil {
		part, cancel := context.WithTimeout(ctx, keepEvery)
		err := c.sampler.Run(part)
		cancel()
		if err := errors.Join(err, c.keep()); err != nil {
			return err
		}
	}
	return nil
}

// keep records the samples since the last time, and how many were lost.
func (c *CPU) keep() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for pid, a := range c.apps {
		if a.ended {
			delete(c.apps, pid)
			c.sampler.Forget(pid)
		}
		if len(a.stacks) == 0 {
			continue
		}
		body, err := stacks.Write(&stacks.Profile{Types: []stacks.Type{
			{Name: "samples", Unit: "count"},
			{Name: "cpu", Unit: "nanoseconds"},
		}, Stacks: a.stacks})
		if err != nil {
			return err
		}
		a.keeper.keep(recording.ProfileCPUClock, body)
		a.stacks = nil
	}
	n, err := c.sampler.Counts()
	if err != nil {
		return err
	}
	for name, v := range map[string]int64{"seen": n.Seen, "lost": n.Lost, "bare": n.Bare, "cut": c.cut, "kept": c.all} {
		c.Sink.Sample(recording.Sample{
			TimeNs: c.Clock.Now(), Source: recording.SourceProfile,
			Subject: recording.SubjectSelf, Name: "cpu-clock." + name, Value: float64(v),
		})
	}
	return nil
}
