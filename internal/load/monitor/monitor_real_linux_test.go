package monitor

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/load/bottleneck"
	"slowpath/internal/source/host"
	"slowpath/internal/source/hostfs"
	"slowpath/internal/wire/target"
)

func start(t *testing.T, spec fleet.Spec) *fleet.Instance {
	t.Helper()
	return fleettest.Start(t, servers.Redis7015, spec)
}

func at(t *testing.T, address string) target.Target {
	t.Helper()
	to, err := target.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// elsewhere is an FS without files, as for a server on another host.
func elsewhere(t *testing.T) host.FS { return host.Root{Root: hostfs.Root{Dir: t.TempDir()}} }

// observed is what was read of a server that had work to do.
func observed(t *testing.T, i *fleet.Instance, o Options) bottleneck.Observations {
	t.Helper()
	o.Clock = clock.New()
	w := Open(t.Context(), o)
	from := o.Clock.Now()
	w.Start()
	for range 300 { // work for it: each takes it some 100 µs or more
		if _, err := i.Do(t.Context(), "EVAL", "local n=0 for i=1,20000 do n=n+i end return n", "0"); err != nil {
			t.Fatal(err)
		}
	}
	to := o.Clock.Now()
	w.Stop()
	var out bottleneck.Observations
	w.Observe(from, to, &out)
	t.Log(w, time.Duration(to-from), out)
	return out
}

// TestServerOnThisHost: its CPU time comes from /proc.
func TestServerOnThisHost(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, fleet.Spec{})
	o := observed(t, i, Options{Targets: []target.Target{at(t, i.Addr)}})
	if len(o.Servers) != 1 || o.Servers[0].Visibility != bottleneck.VisibleOnHost || o.Servers[0].Proxy ||
		o.Servers[0].Process != "" || o.Servers[0].MainThread.CPU <= 0 || len(o.Servers[0].CPUs) == 0 ||
		o.Servers[0].CPU < o.Servers[0].MainThread.CPU ||
		len(o.Machine) == 0 || len(o.Generator.CPUs) == 0 {
		t.Errorf("%+v", o)
	}
	if o.Network.Remote || o.Network.Link != "" {
		t.Errorf("loopback is %+v", o.Network)
	}
}

// TestProxiesAreNamed: the process on this host is the proxy's. HAProxy passes INFO on, so that the server behind it is
// visible as well.
func TestProxiesAreNamed(t *testing.T) {
	needs.Real(t, needs.RedisServer, needs.Twemproxy, needs.HAProxy)
	server := start(t, fleet.Spec{})
	for _, c := range []struct {
		process string
		start   func(*fleet.Fleet, context.Context, ...*fleet.Instance) (*fleet.Instance, error)
		seen    int
	}{{"nutcracker", (*fleet.Fleet).StartTwemproxy, 1}, {"haproxy", (*fleet.Fleet).StartHAProxy, 2}} {
		t.Run(c.process, func(t *testing.T) {
			p := fleettest.StartProxy(t, c.start, server)
			o := observed(t, server, Options{Targets: []target.Target{at(t, p.Addr)}})
			if len(o.Servers) != c.seen || o.Servers[0].Process != c.process || !o.Servers[0].Proxy ||
				o.Servers[0].Visibility != bottleneck.VisibleOnHost {
				t.Errorf("%+v", o.Servers)
			}
			if c.seen == 2 && (o.Servers[1].Process != "" || o.Servers[1].Proxy ||
				o.Servers[1].Visibility != bottleneck.VisibleMainThread) {
				t.Errorf("behind it: %+v", o.Servers[1])
			}
		})
	}
}

// TestSeveralServersBehindAProxy: the CPU time of one of them is not that of all.
func TestSeveralServersBehindAProxy(t *testing.T) {
	needs.Real(t, needs.RedisServer, needs.HAProxy)
	behind := []*fleet.Instance{start(t, fleet.Spec{}), start(t, fleet.Spec{})}
	p := fleettest.StartProxy(t, (*fleet.Fleet).StartHAProxy, behind...)
	o := observed(t, behind[0], Options{Targets: []target.Target{at(t, p.Addr)}})
	if len(o.Servers) != 2 || o.Servers[0].Process != "haproxy" || o.Servers[1].Visibility != bottleneck.NotVisible ||
		!strings.Contains(o.Servers[1].WhyNotVisible, "several servers") {
		t.Errorf("%+v", o.Servers)
	}
}

// TestLoadOfAnotherProcess: the threads are those of the given process, as many as run at once.
func TestLoadOfAnotherProcess(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	busy := exec.Command("sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = busy.Process.Kill() // it does not end by itself
		_ = busy.Wait()
	}()
	i := start(t, fleet.Spec{})
	o := observed(t, i, Options{Targets: []target.Target{at(t, i.Addr)}, PID: busy.Process.Pid, Parallelism: 1})
	if len(o.Generator.Threads) != 1 || o.Generator.Threads[0].CPU <= 0 || len(o.Generator.CPUs) == 0 {
		t.Errorf("%+v", o.Generator)
	}
}

// TestServerElsewhere: the CPU time of a server on another host comes from its INFO.
func TestServerElsewhere(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, fleet.Spec{})
	o := observed(t, i, Options{Targets: []target.Target{at(t, i.Addr)}, FS: elsewhere(t)})
	if len(o.Servers) != 1 || o.Servers[0].Visibility != bottleneck.VisibleMainThread ||
		o.Servers[0].MainThread.CPU <= 0 || o.Servers[0].CPU <= 0 {
		t.Errorf("%+v", o)
	}
}

// TestServerNotVisible: neither INFO nor /proc can be read, and the reason is given.
func TestServerNotVisible(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, fleet.Spec{ACL: []string{"user quiet on >secret ~* +@all -info"}})
	to := at(t, i.Addr)
	to.User, to.Password = "quiet", "secret"
	o := observed(t, i, Options{Targets: []target.Target{to}, FS: elsewhere(t)})
	if len(o.Servers) != 1 || o.Servers[0].Visibility != bottleneck.NotVisible || o.Servers[0].WhyNotVisible == "" {
		t.Errorf("%+v", o)
	}
}

// TestNoServer: a server that is not there is no error here; the load reports it.
func TestNoServer(t *testing.T) {
	needs.Real(t)
	w := Open(t.Context(), Options{Targets: []target.Target{at(t, "127.0.0.1:1")}, Clock: clock.New()})
	w.Start()
	w.Stop()
	var o bottleneck.Observations
	w.Observe(0, 1, &o)
	if len(o.Servers) != 1 || o.Servers[0].Visibility != bottleneck.NotVisible || o.Servers[0].WhyNotVisible == "" {
		t.Errorf("%+v", o)
	}
}
