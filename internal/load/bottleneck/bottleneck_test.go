package bottleneck

import (
	"strings"
	"testing"
	"time"
)

// of is a thread that had these shares of ten seconds.
func of(cpu, ready float64) Thread {
	return Thread{CPU: time.Duration(cpu * 1e10), RunQueue: time.Duration(ready * 1e10)}
}

// closed is a closed loop of ten seconds on a machine of two CPUs, with a server on this host.
func closed(server, generator Thread) Observations {
	return Observations{
		Window:    10 * time.Second,
		Load:      Load{Calls: 1_000_000, Connections: 50, Pipeline: 1, Service: 500 * time.Microsecond},
		Generator: Generator{Threads: []Thread{generator}, CPUs: []int{0, 1}},
		Servers: []Server{{
			Address: "127.0.0.1:6379", Visibility: VisibleOnHost, MainThread: server,
			CPUs: []int{0, 1}, RepliesQueued: -1,
		}},
		Machine: map[int]CPU{0: {Busy: 0.97}, 1: {Busy: 0.6}},
	}
}

func with(o Observations, change func(*Observations)) Observations {
	change(&o)
	return o
}

func openLoop(o Observations, asked float64, calls int64) Observations {
	o.Load.Open, o.Load.AskedPerSecond, o.Load.Calls = true, asked, calls
	return o
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		name      string
		o         Observations
		by        string
		says      []string
		generator bool // limited by it
	}{
		{
			name: "server", o: closed(of(0.99, 0), of(0.62, 0.01)), by: ByServerCPU,
			says: []string{"server main thread at 99 %", "generator at 63 %"},
		},
		{
			name: "server, and the generator nearly", o: closed(of(0.995, 0), of(0.97, 0)), by: ByServerCPU,
			says: []string{"server main thread at 99 %", "not far from its limit either"},
		},
		{
			name: "generator", o: closed(of(0.6, 0), of(0.98, 0.01)), by: ByGeneratorCPU,
			says:      []string{"the generator is the bottleneck: its 1 thread is at 99 %", "a machine with more"},
			generator: true,
		},
		{
			name: "generator with CPUs left", o: with(closed(of(0.6, 0), of(0.98, 0.01)),
				func(o *Observations) { o.Generator.CPUs = []int{0, 1, 2, 3} }),
			by: ByGeneratorCPU, says: []string{"use --threads 2"}, generator: true,
		},
		{
			name: "generator of one connection", o: with(closed(of(0.6, 0), of(0.98, 0.01)),
				func(o *Observations) { o.Load.Connections = 1 }),
			by: ByGeneratorCPU, says: []string{"use more --connections"}, generator: true,
		},
		{
			name: "one of two threads", o: with(closed(of(0.6, 0), of(0.98, 0)),
				func(o *Observations) { o.Generator.Threads = append(o.Generator.Threads, of(0.5, 0)) }),
			by: ByGeneratorCPU, says: []string{"its busiest of 2 threads is at 98 %"}, generator: true,
		},
		{name: "spinning with time left", o: with(closed(of(0.5, 0), of(1, 0)), func(o *Observations) {
			o.Generator.BusyPoll, o.Generator.Spinning = true, 0.7
			o.Load.Connections, o.Load.Service = 1, 10*time.Microsecond
		}), by: ByRoundTrip},
		{
			name: "spinning without time left", o: with(closed(of(0.5, 0), of(1, 0)),
				func(o *Observations) { o.Generator.BusyPoll, o.Generator.Spinning = true, 0.01 }),
			by: ByGeneratorCPU, generator: true,
		},
		{name: "throttled server, v1 and v2 alike", o: with(closed(of(0.2, 0.79), of(0.1, 0)), func(o *Observations) {
			o.Servers[0].Quotas = []Quota{{
				Cgroup: "/pod/redis", Cores: 0.2, Periods: 100, ThrottledPeriods: 98,
				ThrottledTime: 7900 *
					time.Millisecond,
			}}
		}), by: ByThrottled, says: []string{"the server was throttled: 98 of 100 periods, quota 0.20 cores of " +
			"/pod/redis"}},
		{name: "throttled, the wait at the end not counted yet", o: with(closed(of(0.2, 0.7), of(0.1, 0)),
			func(o *Observations) {
				o.Servers[0].Quotas = []Quota{{Cores: 0.2, Periods: 100, ThrottledPeriods: 98, ThrottledTime: 7900 *
					time.Millisecond}}
			}), by: ByThrottled},
		{name: "throttled with one call in flight", o: with(closed(of(0.2, 0.5), of(0.2, 0)), func(o *Observations) {
			o.Load.Connections = 1
			o.Servers[0].Quotas = []Quota{{Cores: 0.2, Periods: 100, ThrottledPeriods: 90, ThrottledTime: 5 *
				time.Second}}
		}), by: ByThrottled},
		{name: "the disk, with one call in flight", o: with(closed(of(0.1, 0), of(0.1, 0)), func(o *Observations) {
			o.Load.Connections, o.Servers[0].Blocked = 1, 0.6
		}), by: ByServerBlocked},
		{name: "throttled generator", o: with(closed(of(0.2, 0), of(0.3, 0.69)), func(o *Observations) {
			o.Generator.Quotas = []Quota{{
				Cgroup: "/bench", Cores: 0.3, Periods: 100, ThrottledPeriods: 99,
				ThrottledTime: 6900 *
					time.Millisecond,
			}}
		}), by: ByGeneratorCPU, says: []string{"it was throttled, 99 of 100 periods"}, generator: true},
		{name: "one CPU for both", o: with(closed(of(0.55, 0.4), of(0.43, 0.55)), func(o *Observations) {
			o.Generator.CPUs, o.Servers[0].CPUs = []int{1}, []int{1}
		}), by: BySharedCPU, says: []string{"the two share one CPU", "CPU 1"}, generator: true},
		{
			name: "placed on one CPU by the scheduler", o: with(closed(of(0.5, 0.48), of(0.4, 0.3)),
				func(o *Observations) { o.Machine = map[int]CPU{0: {Busy: 0.9}, 1: {Busy: 0.1}} }), by: BySharedCPU,
			says: []string{"pin them"}, generator: true,
		},
		{name: "one CPU for both, few calls in flight", o: with(closed(of(0.48, 0.36), of(0.5, 0.29)),
			func(o *Observations) {
				o.Generator.CPUs, o.Servers[0].CPUs, o.Load.Connections = []int{1}, []int{1}, 4
			}), by: BySharedCPU, says: []string{"the two share one CPU"}, generator: true},
		{name: "one of the generator's CPUs is the server's", o: with(closed(of(0.48, 0.4), of(0.5, 0.29)),
			func(o *Observations) {
				o.Servers[0].CPUs = []int{0}
				o.Machine = map[int]CPU{0: {Busy: 1}, 1: {Busy: 1}}
			}), by: BySharedCPU, says: []string{"CPU"}, generator: true},
		{
			name: "neighbours", o: with(closed(of(0.5, 0.48), of(0.4, 0.3)),
				func(o *Observations) { o.Machine = map[int]CPU{0: {Busy: 1}, 1: {Busy: 1}} }),
			by: BySharedCPU, says: []string{"others use 1.1 of the 2 CPUs"}, generator: true,
		},
		{name: "too many threads", o: with(closed(of(0.7, 0.28), of(0.6, 0.3)), func(o *Observations) {
			o.Generator.Threads = append(o.Generator.Threads, of(0.6, 0.3))
			o.Machine = map[int]CPU{0: {Busy: 1}, 1: {Busy: 1}}
		}), by: BySharedCPU, says: []string{"use fewer --threads"}, generator: true},
		{
			name: "the disk", o: with(closed(of(0.3, 0), of(0.2, 0)),
				func(o *Observations) { o.Servers[0].Blocked = 0.65 }),
			by: ByServerBlocked, says: []string{"blocked on its disk or for pages 65 %"},
		},
		{name: "round trip", o: with(closed(of(0.4, 0), of(0.37, 0)), func(o *Observations) {
			o.Load.Connections, o.Load.Calls, o.Load.Service = 1, 222_000, 45*time.Microsecond
		}), by: ByRoundTrip, says: []string{"1 connection × 1 in flight at 45 µs gives 22 200/s"}},
		{name: "a network of 10 ms", o: with(closed(of(0.05, 0), of(0.05, 0)), func(o *Observations) {
			o.Load.Calls, o.Load.Service = 50_000, 10*time.Millisecond
			o.Network = Network{Remote: true, MinRTT: 9800 * time.Microsecond}
		}), by: ByRoundTrip, says: []string{"9.8 ms of it in the network"}},
		{name: "a connection for each call", o: with(closed(of(0.4, 0), of(0.2, 0)), func(o *Observations) {
			o.Load.Connections, o.Load.Calls, o.Load.Service, o.Load.Connecting = 2, 2670, 7500*time.Microsecond,
				7*time.Millisecond
		}), by: ByRoundTrip, says: []string{"2 connections × 1 in flight at 7.5 ms, 7 ms of it to open the " +
			"connection of each call, gives 267/s", "keep connections open"}},
		{name: "pool", o: with(closed(of(0.3, 0), of(0.3, 0)), func(o *Observations) {
			o.Pool = &Pool{Size: 10, Callers: 50, Wait: 2 * time.Millisecond}
		}), by: ByPool, says: []string{"neither is busy: your pool of 10 returns connections under a lock"}},
		{name: "a pool that is not the bottleneck", o: with(closed(of(0.98, 0), of(0.3, 0)), func(o *Observations) {
			o.Pool = &Pool{Size: 10, Callers: 50, Wait: 2 * time.Millisecond}
		}), by: ByServerCPU},
		{name: "link", o: with(closed(of(0.5, 0), of(0.4, 0)), func(o *Observations) {
			o.Network = Network{Remote: true, Link: "eth0", LinkBits: 1e10, LinkUsedBits: 9.6e9}
		}), by: ByNetwork, says: []string{"9.6 Gbit/s of 10 Gbit/s on eth0"}},
		{
			name: "replies that queue", o: with(closed(of(0.1, 0), of(0.1, 0)),
				func(o *Observations) { o.Servers[0].RepliesQueued = 0.9 }),
			by: ByNetwork, says: []string{"replies queue"},
		},
		{
			name: "requests that queue", o: with(closed(of(0.1, 0), of(0.1, 0)),
				func(o *Observations) { o.Network.RwndLimited = 0.6 }),
			by: ByNetwork, says: []string{"requests queue"},
		},
		{
			name: "something else holds calls up", o: with(closed(of(0.01, 0), of(0.01, 0)),
				func(o *Observations) { o.Load.Service = 20 * time.Millisecond }),
			by: ByUnknown, says: []string{"cannot tell: neither is busy", "20 ms"},
		},
		{
			name: "rate kept", o: openLoop(closed(of(0.1, 0), of(0.1, 0)), 5000, 49_990), by: ByRate,
			says: []string{"5 000/s, was kept", "main thread at 10 %"},
		},
		{
			name: "rate not kept by the server", o: openLoop(closed(of(0.99, 0), of(0.4, 0)), 200_000, 1_000_000),
			by:   ByServerCPU,
			says: []string{"the schedule was not kept, 100 000/s of 200 000/s: server main thread at 99 %"},
		},
		{name: "rate kept, and late", o: with(openLoop(closed(of(0.3, 0), of(0.5, 0.3)), 5000, 50_000),
			func(o *Observations) {
				o.Load.LateP99, o.Load.ResponseP99 = 3*time.Millisecond, 4*time.Millisecond
			}), by: ByGeneratorCPU, says: []string{
			"the generator itself was late", "30 % of it in the run queue",
			"CPUs of its own",
		}, generator: true},
		{
			name: "rate kept, and woken late", o: with(openLoop(closed(of(0.3, 0), of(0.5, 0.02)), 5000, 50_000),
				func(o *Observations) {
					o.Load.LateP99, o.Load.ResponseP99 = 3*time.Millisecond, 4*time.Millisecond
				}), by: ByGeneratorCPU, says: []string{"the generator itself was late", "wake-ups", "--busy-poll"},
			generator: true,
		},
		{name: "rate kept, while the server stops now and then", o: with(openLoop(closed(of(0.3, 0), of(0.5, 0)), 5000,
			50_000), func(o *Observations) {
			o.Load.LateP99, o.Load.ResponseP99 = 100*time.Microsecond, 180*time.Millisecond
		}), by: ByRate},
		{
			name: "remote, by its main thread", o: with(closed(of(0.99, 0), of(0.4, 0)),
				func(o *Observations) { o.Servers[0].Visibility = VisibleMainThread }), by: ByServerCPU,
			says: []string{"server main thread at 99 %"},
		},
		{
			name: "remote, by its process", o: with(closed(of(0.99, 0), of(0.4, 0)),
				func(o *Observations) { o.Servers[0].Visibility = VisibleProcess }), by: ByServerCPU,
			says: []string{"server process at 99 %"},
		},
		{name: "remote, refuses INFO", o: with(closed(Thread{}, of(0.4, 0)), func(o *Observations) {
			o.Servers[0].Visibility, o.Servers[0].WhyNotVisible, o.Load.Service = NotVisible, "NOPERM",
				5*time.Millisecond
		}), by: ByUnknown, says: []string{"cannot tell", "NOPERM"}},
		{name: "remote, refuses INFO, generator full", o: with(closed(Thread{}, of(0.99, 0)),
			func(o *Observations) { o.Servers[0].Visibility = NotVisible }), by: ByGeneratorCPU, generator: true},
		{name: "busiest node", o: with(closed(of(0.4, 0), of(0.5, 0)), func(o *Observations) {
			o.Servers = append(o.Servers, Server{
				Address: "127.0.0.1:7002", Visibility: VisibleOnHost,
				MainThread: of(0.98, 0),
			},
				Server{Address: "127.0.0.1:7003", Visibility: VisibleOnHost, MainThread: of(0.3, 0)})
		}), by: ByServerCPU, says: []string{"main thread of 127.0.0.1:7002, the busiest of 3 nodes, at 98 %"}},
		{name: "proxy", o: with(closed(of(0.98, 0), of(0.5, 0)), func(o *Observations) {
			o.Servers[0].Proxy = true
			o.Servers = append(o.Servers, Server{
				Address: "the server behind", Visibility: VisibleMainThread,
				MainThread: of(0.4, 0),
			})
		}), by: ByServerCPU, says: []string{"of the proxy at 127.0.0.1:6379", "the proxy is the bottleneck"}},
		{name: "proxy whose process is seen", o: with(closed(of(0.99, 0), of(0.5, 0)), func(o *Observations) {
			o.Servers[0].Proxy, o.Servers[0].Process = true, "nutcracker"
		}), by: ByServerCPU, says: []string{"nutcracker (the proxy) at 99 % of a core, the generator at 50 %: the " +
			"proxy is the bottleneck"}},
		{name: "proxy with threads", o: with(closed(of(0.1, 0), of(0.5, 0)), func(o *Observations) {
			o.Servers[0].Proxy, o.Servers[0].Process = true, "haproxy"
			o.Servers[0].OtherThreads = []Thread{{Name: "haproxy", CPU: 9900 * time.Millisecond}}
		}), by: ByServerCPU, says: []string{"a thread of haproxy (the proxy) at 99 % of a core"}},
		{
			name: "a process that does not say what it is", o: with(closed(of(0.99, 0), of(0.5, 0)),
				func(o *Observations) { o.Servers[0].Process = "thing" }),
			by: ByServerCPU, says: []string{"thing at 99 % of a core"},
		},
		{name: "spinning, and the server has no time left", o: with(closed(of(0.99, 0), of(1, 0)),
			func(o *Observations) {
				o.Generator.BusyPoll, o.Generator.Spinning = true, 0.99
			}), by: ByServerCPU, says: []string{"server main thread at 99 %, the generator spinning, 99 % of it with " +
			"nothing to do"}},
		{name: "a server whose threads are all alike", o: with(closed(of(0.01, 0), of(0.5, 0)), func(o *Observations) {
			o.Servers[0].OtherThreads = []Thread{{Name: "Proactor1", CPU: 9900 * time.Millisecond}, {
				Name: "Proactor2",
				CPU:  5 * time.Second,
			}}
		}), by: ByServerCPU, says: []string{"server thread Proactor1 at 99 %"}},
		{name: "I/O threads are not the main one", o: with(closed(of(0.98, 0), of(0.5, 0)), func(o *Observations) {
			o.Servers[0].OtherThreads = []Thread{
				{Name: "io_thd_1", CPU: 9990 * time.Millisecond},
				{Name: "bio_aof", CPU: 10 * time.Second},
			}
		}), by: ByServerCPU, says: []string{"main thread at 98 %", "1 I/O thread at 100 %"}},
		{name: "only the I/O threads have no time left", o: with(closed(of(0.6, 0), of(0.5, 0)), func(o *Observations) {
			o.Servers[0].OtherThreads = []Thread{{Name: "io_thd_1", CPU: 9990 * time.Millisecond}, {
				Name: "io_thd_2",
				CPU:  9900 * time.Millisecond,
			}}
		}), by: ByServerCPU, says: []string{"the server's 2 I/O threads are at 99 %, its main thread at 60 %"}},
		{
			name: "no calls", o: with(closed(of(0, 0), of(0, 0)), func(o *Observations) { o.Load.Calls = 0 }),
			by: ByUnknown,
		},
		{name: "too short", o: with(closed(of(0, 0), of(0, 0)), func(o *Observations) {
			o.Window = 20 *
				time.Millisecond
		}), by: ByUnknown, says: []string{"--for 5s"}},
		{name: "nothing at all", o: Observations{}, by: ByUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Of(c.o)
			text := strings.Join(append([]string{v.Sentence}, v.Notes...), "; ")
			if v.By != c.by || v.GeneratorLimited != c.generator {
				t.Errorf("%s (by the generator: %v), want %s (%v): %s", v.By, v.GeneratorLimited, c.by, c.generator,
					text)
			}
			for _, s := range c.says {
				if !strings.Contains(text, s) {
					t.Errorf("%q is not in: %s", s, text)
				}
			}
			if v.Certainty < 0 || v.Certainty > 1 || v.Sentence == "" {
				t.Errorf("certainty %v of %q", v.Certainty, v.Sentence)
			}
		})
	}
}

func TestGeneratorSleeps(t *testing.T) {
	for _, c := range []struct {
		generator Thread
		want      bool
	}{{of(0.5, 0.02), true}, {of(0.5, 0.1), false}, {of(0.9, 0), false}} {
		if got := Of(closed(of(0.3, 0), c.generator)).GeneratorSleeps(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.generator, got, c.want)
		}
	}
	if (Verdict{}).GeneratorSleeps() {
		t.Error("a verdict without evidence says that the generator sleeps")
	}
}
