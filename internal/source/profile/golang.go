package profile

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// goApp is a program with net/http/pprof.
type goApp struct {
	client *client
	what   recording.Profiled
}

// openGo makes sure that an address is one of net/http/pprof.
func openGo(ctx context.Context, o Options, t Target) (app, error) {
	c := newClient(o, t)
	body, err := c.profile(ctx, "goroutine", 0)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return nil, fmt.Errorf("%s is %w: it answers %d (%w); import net/http/pprof in the application, and give the "+
			"port and path where it is served", t, ErrNotPprof, refused.status, err)
	case errors.Is(err, stacks.ErrNotProfile):
		return nil, fmt.Errorf("%s is %w: its answer is not a profile; give the port and path where the application "+
			"serves /debug/pprof/", t, ErrNotPprof)
	case err != nil && strings.Contains(err.Error(), "malformed HTTP"):
		return nil, fmt.Errorf("%s is %w: it does not speak HTTP; check the port", t, ErrNotPprof)
	case err != nil:
		return nil, fmt.Errorf("%w; start the application with net/http/pprof, or leave --pprof out", err)
	}
	if p, err := stacks.Read(body); err != nil || p.Column("goroutine") < 0 {
		return nil, fmt.Errorf("%s is %w of Go: its profile has no goroutines", t, ErrNotPprof)
	}
	a := &goApp{client: c, what: recording.Profiled{Address: t.hostPort(), Name: t.hostPort(), Runtime: "go"}}
	// The command line is arguments with NUL between, of which only the program's name is kept: the others may be
	// secrets.
	if line, err := c.get(ctx, "cmdline", url.Values{}, answerIn); err == nil {
		program, _, _ := strings.Cut(string(line), "\x00")
		if name := path.Base(program); name != "." && name != "/" && len(name) < 100 {
			a.what.Name = name
		}
	}
	return a, nil
}

func (a *goApp) watch(ctx context.Context, s *Source) {
	k := s.keeper(recording.PprofPrefix + a.what.Address)
	k.describe(a.what)
	var wg sync.WaitGroup
	for kind, enable := range map[string]string{
		recording.ProfileMutex: "runtime.SetMutexProfileFraction(100)",
		recording.ProfileBlock: "runtime.SetBlockProfileRate(1000000), which counts waits of a millisecond",
	} {
		if before := a.counted(ctx, k, kind); before != nil {
			wg.Go(func() { a.delays(ctx, k, kind, enable, before) })
		}
	}
	wg.Go(func() { a.goroutines(ctx, k) })
	wg.Go(func() { a.cpu(ctx, k) })
	wg.Wait()
	a.client.http.CloseIdleConnections()
}

// goroutines reads the stacks of all goroutines, again and again.
func (a *goApp) goroutines(ctx context.Context, k *keeper) {
	var total time.Duration
	reported := false
	k.repeatedly(ctx, func() (time.Duration, bool) {
		start := k.Clock.Now()
		body, err := a.client.profile(ctx, "goroutine", 0)
		took := k.since(start)
		if ctx.Err() != nil {
			return took, false
		}
		if err != nil {
			if !reported { // a restart, perhaps: the next reading may succeed
				k.blind("goroutines of "+a.what.Name+" at some times", err.Error(), "")
			}
			reported = true
			return took, true
		}
		total += took
		k.keep(recording.ProfileGoroutine, body)
		k.sample("read_ns", float64(total))
		return took, true
	})
}

// counted is the profile of delays from before the watch; nil where the program does not give it.
func (a *goApp) counted(ctx context.Context, k *keeper, kind string) []byte {
	before, err := a.client.profile(ctx, kind, 0)
	if err != nil && ctx.Err() == nil {
		k.blind("the "+kind+" profile of "+a.what.Name, err.Error(), "")
	}
	return before
}

// delays waits for the end of the watch and records the delays since its start.
func (a *goApp) delays(ctx context.Context, k *keeper, kind, enable string, before []byte) {
	<-ctx.Done()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastIn)
	defer cancel()
	after, err := a.client.profile(late, kind, 0)
	if err != nil {
		k.blind("the "+kind+" profile of "+a.what.Name, err.Error(), "")
		return
	}
	if p, err := stacks.Read(after); err == nil && len(p.Stacks) == 0 {
		k.blind("how long goroutines of "+a.what.Name+" waited ("+kind+" profile)", "the program does not count it",
			"in the program: "+enable)
		return
	}
	grown, err := stacks.Growth(before, after)
	if err != nil {
		k.blind("the "+kind+" profile of "+a.what.Name, err.Error(), "")
		return
	}
	if p, err := stacks.Read(grown); err == nil && negative(p) { // the program restarted: all delays are of the watch
		grown = after
	}
	k.keep(kind, grown)
}

func negative(p *stacks.Profile) bool {
	for _, s := range p.Stacks {
		for _, v := range s.Values {
			if v < 0 {
				return true
			}
		}
	}
	return false
}

// cpu asks for one CPU profile: 100 samples per second and CPU. A program makes one CPU profile at a time.
func (a *goApp) cpu(ctx context.Context, k *keeper) {
	length := cpuFor
	if k.For > 0 {
		length = min(length, k.For/2).Truncate(time.Second)
	}
	if length < cpuLeast {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(cpuDelay):
	}
	body, err := a.client.profile(ctx, "profile", int(length/time.Second))
	switch {
	case ctx.Err() != nil:
		return // Ctrl-C before it was made
	case err != nil:
		k.blind("a CPU profile of "+a.what.Name, err.Error(), "end other profilers, or raise WriteTimeout of its "+
			"HTTP server")
		return
	}
	k.keep(recording.ProfileCPU, body)
	k.sample("cpu_profile_ns", float64(length))
}
