package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// serve starts a real server that ends with the test.
func serve(t *testing.T) *fleet.Instance {
	t.Helper()
	return fleettest.Start(t, servers.Redis7015, fleet.Spec{Password: "secret"})
}

// cluster starts a real cluster of three masters that ends with the test.
func cluster(t *testing.T, name servers.Name) *fleet.Cluster {
	t.Helper()
	return fleettest.StartCluster(t, name, 3, 0, fleet.Spec{})
}

// program builds a program in the user's cache, as the lab does. It skips the test if the toolchain is missing or has
// no network.
func program(t *testing.T, name Name) Program {
	t.Helper()
	c, err := OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Get(t.Context(), name, t.Output())
	if errors.Is(err, ErrTool) || errors.Is(err, ErrRegistry) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// start starts a program that ends with the test.
func start(t *testing.T, name Name, o Options, prefix ...string) *Process {
	t.Helper()
	run, err := program(t, name).Start(t.TempDir(), o, prefix...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := run.Stop(endTimeout); err != nil {
			run.Kill() // the test has stopped it already, or Stop does not
		}
	})
	return run
}

// mix writes and reads ten keys.
var mix = []Command{{Args: []string{"SET", "k{n}", "[1,2]"}}, {Args: []string{"GET", "k{n}"}, Weight: 3}}

func ready(t *testing.T, run *Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	if err := run.AwaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestProgramsCallAndSummarise(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	s := serve(t)
	o := Options{
		Addresses: []string{s.Addr}, Password: "secret", Name: "lab", DB: 1, Workers: 2, Rate: 200, Keys: 10,
		PoolSize: 4, MaxIdle: 4,
		Commands: mix,
	}
	for _, c := range tested() {
		t.Run(string(c.Name), func(t *testing.T) {
			run := start(t, c.Name, o)
			ready(t, run)
			list, err := s.Do(t.Context(), "CLIENT", "LIST")
			if text, _ := list.(string); err != nil || !strings.Contains(text, " name=lab ") || !strings.Contains(text,
				" db=1 ") {
				t.Errorf("CLIENT LIST does not show it (%v):\n%v", err, list)
			}
			sum, err := run.Stop(endTimeout)
			if err != nil {
				t.Fatal(err)
			}
			if sum.Calls == 0 || sum.Errors != 0 || sum.Histogram.Quantile(0) <= 0 || sum.Max <= 0 || sum.Ran <= 0 ||
				sum.CPU <= 0 {
				t.Errorf("summary: %+v", sum)
			}
			if sum.Dials == 0 || time.Since(time.Unix(0, sum.StartUnix)) > time.Hour {
				t.Errorf("%d dials, start %d", sum.Dials, sum.StartUnix)
			}
			if !strings.Contains(sum.Library, c.Version) && c.Version != ofDebian {
				t.Errorf("library %q, not %s", sum.Library, c.Version)
			}
		})
	}
}

// TestProgramsRouteInACluster also lets each program end by itself after its duration. A client that does not route
// would count MOVED as errors.
func TestProgramsRouteInACluster(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	nodes := cluster(t, servers.Redis7015).Addrs()
	o := Options{
		Addresses: nodes[:1], Mode: protocol.Cluster, Workers: 4, Rate: 400, Keys: 100, Duration: 300 *
			time.Millisecond,
		Warmup: 200 * time.Millisecond, Commands: mix,
	}
	for _, c := range tested() {
		if c.Name == GoRedis6 || c.Name == GoRedis8 {
			continue // cannot parse CLUSTER SLOTS of Redis 7, which has a fourth element; see TestOldClients
		}
		t.Run(string(c.Name), func(t *testing.T) {
			sum, err := program(t, c.Name).Run(t.Context(), t.TempDir(), o)
			if !c.Has(protocol.Cluster) {
				if !errors.Is(err, ErrUnsupported) {
					t.Errorf("no cluster mode: %v", err)
				}
				return
			}
			if err != nil || sum.Calls == 0 || sum.Errors > 0 {
				t.Errorf("%v, %v", err, sum)
			}
		})
	}
}

// TestOwnConnections: rare calls share one connection of a pool, unless each worker has its own.
func TestOwnConnections(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	s := serve(t)
	const workers = 5
	o := Options{
		Addresses: []string{s.Addr}, Password: "secret", Name: "lab", Workers: workers, Rate: 50, Keys: 10,
		PoolSize: workers, MaxIdle: workers, Duration: 800 * time.Millisecond, Commands: mix, OwnConnections: true,
	}
	for _, c := range tested() {
		if !c.Own {
			continue
		}
		t.Run(string(c.Name), func(t *testing.T) {
			o := o
			if c.Name == Jedis {
				o.PoolSize = 1 // its threads have theirs beside the pool, which would open several at the start
			}
			sum, err := program(t, c.Name).Run(t.Context(), t.TempDir(), o)
			if err != nil || sum.Calls == 0 || sum.Errors > 0 || sum.Dials != workers {
				t.Errorf("%v, %d dials: %v", err, sum.Dials, sum)
			}
		})
	}
}

func TestHTTPServices(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	s := serve(t)
	o := Options{Addresses: []string{s.Addr}, Password: "secret", Keys: 10, PoolSize: 4, MaxIdle: 4, Commands: mix}
	for _, c := range tested() {
		if !c.HTTP || c.Name == Lettuce6 {
			continue // the same program as Lettuce7, and JVMs take seconds
		}
		t.Run(string(c.Name), func(t *testing.T) {
			service, err := program(t, c.Name).Serve(t.Context(), t.TempDir(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer service.Kill()
			ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
			defer cancel()
			// the first request of a JVM takes long
			if err := get(ctx, http.DefaultTransport, "http://"+service.Addr()+"/"); err != nil {
				t.Fatal(err)
			}
			seen, err := Requests{Connections: 3, Duration: 200 * time.Millisecond}.Make(t.Context(), service.Addr())
			if err != nil || seen.Errors > 0 {
				t.Errorf("%v, %v", err, seen)
			}
			if c.Pprof {
				wantProfile(t, service.Addr())
			}
			own, err := service.Stop(endTimeout)
			if err != nil || own.Calls < seen.Calls+1 || own.Errors > 0 {
				t.Errorf("the HTTP clients saw %v, the service %v (%v)", seen, own, err)
			}
		})
	}
}

// tested are the clients that a test runs: in the real layer those that are built within seconds and download little,
// in the long layer all.
func tested() []Client {
	if needs.InLong() {
		return Catalogue()
	}
	return slices.DeleteFunc(Catalogue(), func(c Client) bool {
		return c.Name != GoRedis9 && c.Name != Redigo && c.Name != PyAsync
	})
}

// onePerLanguage is for tests of the common part of the programs of a language.
func onePerLanguage() []Name {
	if needs.InLong() {
		return []Name{GoRedis9, Jedis, RedisPy, NodeRedis, PyAsync, Hiredis, RedisRS}
	}
	return []Name{GoRedis9, PyAsync}
}

// TestProgramsEndWithTheLab: when a lab is killed, the standard input of its programs is closed.
func TestProgramsEndWithTheLab(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	s := serve(t)
	for _, name := range onePerLanguage() {
		t.Run(string(name), func(t *testing.T) {
			run := start(t, name, Options{
				Addresses: []string{s.Addr}, Password: "secret", Workers: 1,
				Commands: []Command{{Args: []string{"PING"}}},
			})
			if err := run.stdin.Close(); err != nil {
				t.Fatal(err)
			}
			<-run.Exited()
		})
	}
}

// TestProgramsChange: a program goes on with other options without a failed call, and sums up operations by when they
// were due. pyasync keeps its connections.
func TestProgramsChange(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	s := serve(t)
	o := Options{
		Addresses: []string{s.Addr}, Password: "secret", Name: "before", Workers: 2, Rate: 100, Keys: 10, PoolSize: 4,
		MaxIdle: 4, Slice: 50 * time.Millisecond, Commands: mix,
	}
	for _, c := range tested() {
		t.Run(string(c.Name), func(t *testing.T) {
			run := start(t, c.Name, o)
			ready(t, run)
			after := o
			after.Name, after.Chain = "after", 3
			if err := run.Change(after); err != nil {
				t.Fatal(err)
			}
			if c.Name != PyAsync {
				awaitName(t, s, "after")
			}
			sum, err := run.Stop(endTimeout)
			if err != nil {
				t.Fatal(err)
			}
			var all protocol.Slice
			for _, one := range sum.Slices {
				all.Operations += one.Operations
				all.Failed += one.Failed
				all.Ns += one.Ns
			}
			if all.Operations == 0 || all.Ns <= 0 || sum.Errors > 0 {
				t.Errorf("%+v of %v", all, sum)
			}
		})
	}
}

// awaitName waits until a connection has a name that none had before.
func awaitName(t *testing.T, s *fleet.Instance, name string) {
	t.Helper()
	await.Until(t, "a connection named "+name, func() bool {
		list, err := s.Do(t.Context(), "CLIENT", "LIST")
		text, _ := list.(string)
		return err == nil && strings.Contains(text, " name="+name+" ")
	})
}

// TestPyAsyncComputesElsewhere: with block_elsewhere another process computes, which ends with the program.
func TestPyAsyncComputesElsewhere(t *testing.T) {
	needs.Real(t, needs.RedisServer, needs.Python)
	s := serve(t)
	run := start(t, PyAsync, Options{
		Addresses: []string{s.Addr}, Password: "secret", Workers: 1, Rate: 100, Keys: 10, Commands: mix,
		BlockEvery: 20 * time.Millisecond, BlockFor: 10 * time.Millisecond, BlockElsewhere: true,
	})
	ready(t, run)
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", run.PID, run.PID))
	if err != nil {
		t.Skip(err) // a kernel without CONFIG_PROC_CHILDREN
	}
	children := strings.Fields(string(list))
	if len(children) != 1 {
		t.Fatalf("its children are %q", children)
	}
	if sum, err := run.Stop(endTimeout); err != nil || sum.Errors > 0 {
		t.Errorf("%v, %v", sum, err)
	}
	await.Until(t, "process "+children[0]+" has ended", func() bool {
		_, err := os.Stat("/proc/" + children[0])
		return err != nil
	})
}
