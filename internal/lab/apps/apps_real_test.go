package apps

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// tested are the applications that a test runs: in the real layer two that are built within seconds and download
// little, in the long layer all.
func tested() []App {
	if needs.InLong() {
		return Catalogue()
	}
	return slices.DeleteFunc(Catalogue(), func(a App) bool { return a.Name != "leaderboard" && a.Name != "telemetry" })
}

// TestApplicationsWork runs each application on a real server.
func TestApplicationsWork(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{Password: "se cret"})
	for _, a := range tested() {
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
	for _, a := range tested() {
		if a.TLS {
			t.Run(string(a.Name), func(t *testing.T) {
				t.Parallel()
				work(t, program(t, a), Options{Addr: s.Addr, CACert: s.CACert})
			})
		}
	}
}

// program gets an application. It skips the test if it cannot be built here.
func program(t *testing.T, a App) Program {
	t.Helper()
	c, err := OpenCache("")
	if err != nil {
		t.Fatal(err)
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
	await.UntilOr(t, func() bool { return done() >= min(enough, int64(p.Rate)) },
		func() string { return fmt.Sprintf("operations of %s; it printed: %s", p.Name, r.collector.end()) })
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
}
