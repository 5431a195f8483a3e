// Package profile is the source that profiles applications: what their goroutines and threads wait for while calls are
// slow.
//
// An application written in Go is asked at its address of net/http/pprof. Its settings are never changed: the profiles
// of mutexes and of blocking are what the program itself has switched on, and the CPU profile is asked for once, for a
// bounded time. A JVM on this host is asked for its thread dump, as jstack does. For any process on this host
// the kernel samples where it spends its CPU time (internal/source/profile/sampler).
package profile

import (
	"context"
	"net"
	"sync"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// Bounds of the cost for an application. Reading all goroutines stops the program in steps, for 1 ms and more from some
// thousand goroutines: the next reading waits for spare times the time that one costs.
const (
	readEvery  = time.Second
	spare      = 50 // 2 % of the time
	thinAfter  = 60 // readings; later ones are spread over the time that has passed: a day has about 500
	cpuFor     = 5 * time.Second
	answerIn   = 5 * time.Second // for one answer, plus the time that it is asked to last
	lastIn     = 2 * time.Second // for reading after the watch has ended
	keepBytes  = 64 << 20        // of profiles of one application
	maxAnswers = 8 << 20         // bytes of one profile
	maxTargets = 16              // applications of one watch
	cpuLeast   = time.Second     // a watch that is shorter than twice this has no CPU profile
	cpuDelay   = 500 * time.Millisecond
)

// Options of a watch.
type Options struct {
	FS hostfs.FS // this host when nil
	// Dial connects to applications; that of net.Dialer when nil.
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Targets []Target
	For     time.Duration // how long the watch is meant to last; 0: not known
	Clock   clock.Clock
	Sink    recording.ProfileSink
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = hostfs.Root{}
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	return o
}

// Source is the applications that have answered.
type Source struct {
	Options
	apps []app
}

// app is an application that can be watched.
type app interface {
	watch(ctx context.Context, s *Source)
}

// Attach has the JVMs among the applications open their sockets, before privileges are given up that this needs. Its
// error is that of Open.
func Attach(ctx context.Context, o Options) error {
	o = o.withDefaults()
	for _, t := range o.Targets {
		if t.pid == 0 {
			continue
		}
		if _, err := attached(ctx, o, t.pid); err != nil {
			return err
		}
	}
	return nil
}

// Open asks each application whether it can be profiled. The error names the first that cannot, and matches
// ErrNotPprof, ErrUnreachable or ErrTarget.
func Open(ctx context.Context, o Options) (*Source, error) {
	s := &Source{Options: o.withDefaults()}
	for _, t := range o.Targets {
		a, err := t.open(ctx, s.Options)
		if err != nil {
			return nil, err
		}
		s.apps = append(s.apps, a)
	}
	return s, nil
}

// Run reads profiles until ctx ends, and then the growth of those that count from the start of a program. What an
// application refuses is a blind spot of the recording.
func (s *Source) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, a := range s.apps {
		wg.Go(func() { a.watch(ctx, s) })
	}
	wg.Wait()
}

// keeper records the profiles of one application, up to keepBytes.
type keeper struct {
	*Source
	subject string
	bytes   int64
	full    sync.Once
	mu      sync.Mutex
}

func (s *Source) keeper(subject string) *keeper { return &keeper{Source: s, subject: subject} }

func (k *keeper) keep(kind string, body []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bytes += int64(len(body)); k.bytes > keepBytes {
		k.full.Do(func() {
			k.blind("profiles of "+k.subject+" for the rest of the watch", "they have reached their limit of 64 MiB",
				"watch for a shorter time")
		})
		return
	}
	k.Sink.Profile(recording.Profile{TimeNs: k.Clock.Now(), Subject: k.subject, Kind: kind, Pprof: body})
}

func (k *keeper) sample(name string, value float64) {
	k.Sink.Sample(recording.Sample{
		TimeNs: k.Clock.Now(), Source: recording.SourceProfile, Subject: k.subject,
		Name: name, Value: value,
	})
}

func (k *keeper) blind(what, why, enable string) {
	k.Sink.Event(recording.Event{
		TimeNs: k.Clock.Now(), Source: recording.SourceProfile, Subject: k.subject,
		Kind:   recording.KindBlindSpot,
		Detail: recording.Detail(recording.BlindSpot{What: what, Why: why, Enable: enable}),
	})
}

func (k *keeper) describe(p recording.Profiled) {
	k.Sink.Snapshot(recording.Snapshot{
		TimeNs: k.Clock.Now(), Source: recording.SourceProfile, Subject: k.subject,
		Name: recording.SnapshotApplication, Body: recording.Detail(p),
	})
}

// repeatedly calls read until ctx ends. read says how long the application needed for the answer, and whether to go on.
// The quickest answer is what a reading costs: another may have waited for a CPU.
func (k *keeper) repeatedly(ctx context.Context, read func() (took time.Duration, more bool)) {
	start := k.Clock.Now()
	least := time.Duration(0)
	for n := 1; ; n++ {
		took, more := read()
		if !more {
			return
		}
		if n == 1 || took < least {
			least = took
		}
		wait := max(readEvery, least*spare)
		if n > thinAfter {
			wait = max(wait, k.since(start)/thinAfter)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (k *keeper) since(ns int64) time.Duration { return time.Duration(k.Clock.Now() - ns) }
