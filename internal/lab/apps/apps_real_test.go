package apps

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// TestApplicationsWork runs each application that this host has built, or builds within seconds, on a real server.
// `slowpath lab apps build` builds all.
func TestApplicationsWork(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{Password: "se cret"})
	for _, a := range Catalogue() {
		t.Run(string(a.Name), func(t *testing.T) {
			t.Parallel()
			work(t, program(t, a), Options{Addr: s.Addr, Password: "se cret"})
		})
	}
}

// TestApplicationsSpeakTLS checks that the libraries verify the server's certificate by the CA of the environment.
func TestApplicationsSpeakTLS(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{TLS: true})
	for _, a := range Catalogue() {
		if a.TLS {
			t.Run(string(a.Name), func(t *testing.T) {
				t.Parallel()
				work(t, program(t, a), Options{Addr: s.Addr, CACert: s.CACert})
			})
		}
	}
}

// slow lists the languages whose applications take long to build: they are tested where they are built already.
var slow = []string{"Java", "Rust"}

// program gets an application. It skips the test if it would take long to build, or cannot be built here.
func program(t *testing.T, a App) Program {
	t.Helper()
	c, err := OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	if !c.Built(a) && slices.Contains(slow, a.Language) {
		t.Skip("takes long to build; slowpath lab apps build does it")
	}
	p, err := c.Get(t.Context(), a.Name, t.Output())
	if errors.Is(err, ErrTool) || errors.Is(err, ErrRegistry) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// enough is how many operations an application has to do in a test, if its rate allows that in a second.
const enough = 20

// work lets an application do some operations, and checks that all of them succeed and that it ends in order.
func work(t *testing.T, p Program, o Options) {
	t.Helper()
	r, err := p.Start(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	done := func() (n int64) {
		for _, o := range r.Stats().Operations() {
			n += o.Done
		}
		return n
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for done() < min(enough, int64(p.Rate)) && ctx.Err() == nil {
		pause(ctx, 100*time.Millisecond)
	}
	stats, err := r.Stop()
	if err != nil {
		t.Error(err)
	}
	t.Log(stats)
	for _, o := range stats.Operations() {
		if o.Errors > 0 || o.Done == 0 || o.Histogram.Count() != o.Done || o.Sum < o.Max {
			t.Errorf("%+v; it printed: %s", o, r.collector.end())
		}
	}
	if done() < min(enough, int64(p.Rate)) {
		t.Errorf("only %d operations; it printed: %s", done(), r.collector.end())
	}
}
