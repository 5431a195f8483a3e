// Package source runs the sources of one watch side by side into a recording. It decides which sources can run against
// a target and says why the others cannot; it judges nothing.
package source

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/source/host"
	"slowpath/internal/source/probe"
	"slowpath/internal/source/profile"
	"slowpath/internal/source/server"
	"slowpath/internal/source/tap"
	"slowpath/internal/wire/target"
)

// Options of a watch.
type Options struct {
	Targets []target.Target
	For     time.Duration // 0: until the context ends
	Slow    string        // "auto" or a duration
	Version string        // of this program
	NoProbe bool
	NoHost  bool
	NoTap   bool
	Resolve bool // ask DNS for the names of hosts that call
	Cluster bool // the password is for every node that a target names, wherever that is
	// Connections is how many ends of connections the tap follows at a time; 0: its default.
	Connections int
	// TapBudget is the CPU time of the tap's kernel programs per time, 0.03: 3 % of a core; 0: no limit.
	TapBudget float64
	Processes tap.ProcessFilter // whose calls the tap records; the watch ends when the process of its PID does
	ProbeRate float64           // calls per second and node; 0: probe.DefaultRate
	Timeout   time.Duration     // for the first connection to each target; 0: DefaultTimeout
	Clock     *clock.Real
	FS        host.FS          // of this host; the real one when nil
	Profiles  []profile.Target // applications to profile
	CPU       bool             // sample the CPU time of the servers on this host, and of Processes.PID
	CPUOf     []int            // processes whose CPU time is sampled, too
	// MainThreads: sample the CPU time of the main threads of the servers on this host, where this user may.
	MainThreads bool
	// Sparing is for a watch without end: the host is read less often. It then does not see waits of a main thread
	// below 20 ms (200 ms with the tap, which sees them itself) as states, only in counters; nor an accept queue that
	// is full for less than a second; nor waits and work of threads below a fifth of a slow call.
	Sparing bool
	Pace    *clock.Pace // at which a sparing watch asks servers, makes calls of its own and reads the host
	Frames  string      // the user's own table of frames (internal/source/profile/stacks), empty: none
	// Progress, if set, is called at each step of the start, with a few words about it.
	Progress func(string)
	// Loaded, if set, is called when the rest of the watch needs fewer privileges (internal/source/privilege): the
	// kernel programs are loaded. Mostly nothing was read yet of servers and applications.
	Loaded func()
	// Unreachable, if set, is told of each target that cannot be watched now. The watch leaves it out, and is an error
	// only where none is left.
	Unreachable func(target.Target, error)
	// Started, if set, is called when the servers were reached and the watch begins, with their number.
	Started func(nodes int)
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.FS == nil {
		o.FS = host.Root{}
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

// Bounds.
const (
	DefaultTimeout = 4 * time.Second
	maxNodes       = 64  // nodes of a cluster that are watched; the rest is a blind spot
	totalProbeRate = 600 // calls per second over all nodes, so that the probe's own work stays small on clusters
)

// Run watches until o.For has passed or ctx ends. It returns an error only where there is nothing to watch at all; what
// was recorded until then stays in the sink.
func Run(ctx context.Context, o Options, sink recording.ProfileSink) error {
	o = o.withDefaults()
	if !o.NoProbe {
		defer target.HoldStamps()()
	}
	r := &run{Options: o, sink: sink, names: newHostNames(o, sink)}
	defer func() { r.spaces.Close() }()
	defer func() {
		if r.network != nil {
			r.network.Close()
		}
	}()
	if err := r.start(ctx); err != nil {
		r.closeTap()
		r.closeCPU()
		return err
	}
	if o.Started != nil {
		o.Started(len(r.nodes))
	}
	r.describe()
	ctx, cancel := Window(ctx, o.For)
	defer cancel()
	if r.kernel != nil {
		ctx = target.WithCookies(ctx, r.kernel.Own)
	}
	var end sync.WaitGroup
	end.Go(func() { r.endWithProcess(ctx, o.Processes.PID, cancel) })
	r.runAll(ctx)
	end.Wait()
	r.finish()
	return nil
}

// start does what comes before the time of the watch. Privileges are given up before anything is read of servers and
// applications, where the rest needs none.
func (r *run) start(ctx context.Context) (err error) {
	if err := r.attachProfiles(ctx); err != nil {
		return err
	}
	if err := r.loadCPU(); err != nil {
		return err
	}
	r.loadTap()
	if !r.NoHost {
		r.network = host.HearNetwork()
	}
	late := r.needsRights()
	if !late {
		r.loaded()
	}
	if r.profiles, err = openProfiles(ctx, r.Options, r.sink); err != nil {
		return err
	}
	if r.nodes, err = connectAll(ctx, r.Options, r.sink); err != nil {
		return err
	}
	if err := r.startCPU(); err != nil {
		return err
	}
	r.startTap()
	if late {
		r.loaded()
	}
	return nil
}

// needsRights reports whether processes can only be hooked, or their functions named, by who still has all rights: on
// kernels without links to many places, and where a file that a server has mapped was replaced (map_files). The servers
// are those that listen at the targets: no other is known yet.
func (r *run) needsRights() bool {
	if r.kernel != nil && !tap.HooksLater() {
		return true
	}
	if r.kernel == nil && r.cpuClock == nil {
		return false
	}
	pids := slices.Clone(r.CPUOf)
	for _, t := range r.Targets {
		p, err := host.Locate(r.FS, host.Query{Network: t.Network, Listen: listenAddress(t), UnixPath: t.Path})
		if err == nil {
			pids = append(pids, p.PID)
		}
	}
	return slices.ContainsFunc(append(pids, r.Processes.PID), func(pid int) bool { return host.Replaced(r.FS, pid) })
}

// loaded has privileges given up that only the start of a watch needs. What needs them later is done before.
func (r *run) loaded() {
	if r.Loaded == nil {
		return
	}
	if root, ok := r.FS.(host.Root); ok && !r.NoHost {
		r.spaces = host.HoldSpaces(root)
		root.Spaces = r.spaces
		r.FS = root
	}
	r.Loaded()
}

// endWithProcess ends the watch when the process that it is about has ended.
func (r *run) endWithProcess(ctx context.Context, pid int, cancel func()) {
	if pid == 0 || !host.AwaitEnd(ctx, r.FS, pid) {
		return
	}
	r.blind(r.nodes[0].address, recording.BlindSpot{
		What:   fmt.Sprintf("calls of --pid %d for the rest of the time that was asked for", pid),
		Why:    "the process has ended, and the watch with it",
		Enable: "--comm or --container, which go on with the next process",
	})
	cancel()
}

// run is the state of one Run.
type run struct {
	Options
	sink     recording.ProfileSink
	nodes    []node
	cpu      time.Duration   // CPU time of this process at the start
	kernel   *tap.Tap        // nil where it does not run
	noTap    error           // why, if the programs could not be loaded
	profiles *profile.Source // nil where no application was named
	cpuClock *profile.CPU    // nil where no CPU time is sampled
	spaces   *host.Spaces    // nil where privileges are kept
	network  *host.NetworkChanges
	names    *hostNames // nil where none are looked for
}

// describe writes what is known at the start.
func (r *run) describe() {
	now := r.Clock.Now()
	r.cpu = ownCPU()
	r.sink.SetMeta(recording.MetaVersion, r.Version)
	r.sink.SetMeta(recording.MetaStart, strconv.FormatInt(now, 10))
	r.sink.SetMeta(recording.MetaSlow, r.Slow)
	describeHost(r.sink)
	var addrs []string
	servers := map[string]recording.NodeServer{}
	for _, n := range r.nodes {
		addrs = append(addrs, n.address)
		servers[n.address] = recording.NodeServer{Server: n.identity.Server, Kind: n.kind()}
	}
	for key, value := range recording.NodeMetas(addrs, servers) {
		r.sink.SetMeta(key, value)
	}
	r.describeProxies(now)
	r.describeProfiles()
}

// describeProxies writes which nodes are proxies on this host.
func (r *run) describeProxies(now int64) {
	called := r.calledNodes()
	for _, n := range r.nodes {
		if n.proxy.PID == 0 {
			continue
		}
		p := recording.ProcessOfNode{PID: n.proxy.PID, Comm: n.proxy.Comm, Unnamed: n.unnamed}
		_, peers, _ := host.Connected(r.FS, n.proxy.PID) // none where they may not be seen
		for _, peer := range peers {
			if called[peer.Addr] == "" {
				p.Elsewhere++
			}
		}
		r.sink.Snapshot(recording.Snapshot{
			TimeNs: now, Source: recording.SourceHost, Subject: n.address, Name: recording.SnapshotProxy,
			Body: recording.Detail(p),
		})
	}
}

// runAll runs every source of every node until ctx ends.
func (r *run) runAll(ctx context.Context) {
	var wg sync.WaitGroup
	rate := r.ProbeRate
	if rate == 0 {
		rate = min(probe.DefaultRate, totalProbeRate/float64(len(r.nodes)))
	}
	r.sink.SetMeta(recording.MetaProbeRate, strconv.FormatFloat(rate, 'g', 4, 64))
	r.status(recording.SourceProbe, !r.NoProbe, "left out by --no-probe")
	asked := slices.ContainsFunc(r.nodes, func(n node) bool { return !n.mergesInfo() })
	r.status(recording.SourceServer, asked, "a proxy has no counters of its own; name a server behind it")
	wg.Go(func() { r.watchSelf(ctx) })
	if r.profiles != nil {
		wg.Go(func() { r.profiles.Run(ctx) })
	}
	if r.cpuClock != nil {
		wg.Go(func() { r.runSource(ctx, "CPU profile", r.nodes[0], func() error { return r.cpuClock.Run(ctx) }) })
	}
	if r.kernel != nil {
		wg.Go(func() { r.runTap(ctx, r.kernel) })
	}
	if r.network != nil {
		for _, spot := range r.network.Unheard {
			r.blind(recording.SubjectMachine, spot)
		}
		wg.Go(func() { r.network.Watch(ctx, r.Clock, r.sink) })
		wg.Go(func() { host.WatchPackages(ctx, host.PackagesOptions{FS: r.FS, Clock: r.Clock, Sink: r.sink}) })
	}
	if r.Resolve {
		wg.Go(func() { r.names.run(ctx) })
	}
	for _, n := range r.nodes {
		wg.Go(func() { r.runNode(ctx, n, rate) })
	}
	if called := r.calledNodes(); !r.NoHost && len(called) > 0 && runtime.GOOS == "linux" {
		o := host.CallersOptions{FS: r.FS, Clock: r.Clock, Sink: r.sink, Nodes: called}
		if r.Sparing {
			o.Every, o.CostShare, o.Pace = sparingCallers, sparingCostShare, r.Pace
		} else if r.MainThreads {
			stacks := profile.NewCallers(profile.Options{FS: r.FS, Clock: r.Clock, Sink: r.sink}, r.followCaller)
			o.Found = stacks.Found
			wg.Go(func() { r.runSource(ctx, "stacks of callers", r.nodes[0], func() error { return stacks.Run(ctx) }) })
		}
		wg.Go(func() {
			r.runSource(ctx, "host", r.nodes[0], func() error { return host.WatchCallers(ctx, o) })
		})
		if r.kernel == nil { // the tap knows it of each moment
			threads := o
			threads.CostShare /= sparingThreads
			wg.Go(func() {
				r.runSource(ctx, "host", r.nodes[0], func() error { return host.WatchCallerThreads(ctx, threads) })
			})
		}
	}
	r.hostStatus()
	wg.Wait()
}

// runNode runs the sources of one node until ctx ends: its server, the probe with this many calls per second, and its
// host where its process is here.
func (r *run) runNode(ctx context.Context, n node, rate float64) {
	var wg sync.WaitGroup
	q := quiet{clock: r.Clock, slow: cmp.Or(r.slow(), probe.DefaultSlow)}
	pace := r.Pace
	if pace == nil && r.ProbeRate == 0 {
		pace = &q.pace
	}
	if n.mergesInfo() {
		r.blind(n.address, recording.BlindSpot{
			What:   server.OwnCounters,
			Why:    "the proxy there makes one INFO of those of all its servers, and asks all of them each time",
			Enable: "name the address of the server itself, not of a proxy",
		})
	} else {
		wg.Go(func() { r.watchServer(ctx, n, q.load) })
	}
	if !r.NoProbe {
		wg.Go(func() {
			r.runSource(ctx, "probe", n, func() error {
				return probe.Watch(ctx, probe.Options{
					Target: n.target, Node: n.address, Clock: r.Clock, Sink: r.sink, Slow: r.slow(),
					Rate: rate, FreshRate: min(probe.DefaultFreshRate, rate/5),
					HashTag: n.hashTag, PingOnly: n.identity.ClusterEnabled && n.hashTag == "", Pace: pace,
					OnCall: q.called,
				})
			})
		})
	}
	if n.process != nil {
		wg.Go(func() {
			r.runSource(ctx, "host", n, func() error { return r.watchHost(ctx, n) })
		})
	}
	wg.Wait()
}

// watchServer asks a server for its own counters until ctx ends.
func (r *run) watchServer(ctx context.Context, n node, load func(float64)) {
	r.runSource(ctx, "server", n, func() error {
		return server.Watch(ctx, server.Options{
			Target: n.target, Node: n.address, Clock: r.Clock, Sink: r.sink, Listed: r.listed(n),
			Pace: r.Pace, Load: load,
		})
	})
}

// runSource runs one source. That it fails is a blind spot, and not the end of the watch.
func (r *run) runSource(ctx context.Context, name string, n node, f func() error) {
	if err := f(); err != nil && ctx.Err() == nil {
		r.blind(n.address, recording.BlindSpot{
			What: "the " + name + " source on " + n.address, Why: err.Error(),
			Enable: "fix the error and watch again",
		})
	}
}

// watchSelf records once per second what this process used.
func (r *run) watchSelf(ctx context.Context) {
	everySecond := time.NewTicker(time.Second)
	defer everySecond.Stop()
	for {
		r.sampleOwnCPU(r.Clock.Now()) // a part of the watch may be saved
		select {
		case <-ctx.Done():
			return
		case <-everySecond.C:
		}
	}
}

func (r *run) slow() time.Duration {
	d, _ := time.ParseDuration(r.Slow) // "auto" is 0: the probe's default
	return d
}

func (r *run) status(name string, used bool, why string) {
	s := recording.SourceStatus{Name: name, Used: used}
	if !used {
		s.Why = why
	}
	r.sink.SetMeta(recording.MetaSource+name, recording.Detail(s))
}

// hostStatus records whether the host source runs, and for each server whose process is not known what is missing.
func (r *run) hostStatus() {
	why, watched := "left out by --no-host", 0
	if !r.NoHost {
		why = r.nodes[0].hostWhy
	}
	for _, n := range r.nodes {
		if n.process != nil {
			watched++
		} else if !r.NoHost {
			r.blind(n.address, recording.BlindSpot{
				What: "the host of " + n.address + " (CPU quota, run queue, freezes, disk, accept queue)",
				Why:  n.hostWhy, Enable: n.hostEnable,
			})
		}
	}
	r.status(recording.SourceHost, watched > 0, why)
}

func (r *run) blind(subject string, b recording.BlindSpot) { blindSpot(r.sink, r.Clock, subject, b) }

func blindSpot(sink recording.Sink, c *clock.Real, subject string, b recording.BlindSpot) {
	sink.Event(recording.Event{
		TimeNs: c.Now(), Source: recording.SourceWatch, Subject: subject, Kind: recording.KindBlindSpot,
		Detail: recording.Detail(b),
	})
}

// finish records the end and what the watch cost.
func (r *run) finish() {
	now := r.Clock.Now()
	r.sampleOwnCPU(now)
	r.sink.SetMeta(recording.MetaEnd, strconv.FormatInt(now, 10))
}

func (r *run) sampleOwnCPU(now int64) {
	r.sink.Sample(recording.Sample{
		TimeNs: now, Source: recording.SourceHost, Subject: recording.SubjectSelf,
		Name: series.OwnCPU.Name, Value: float64(ownCPU() - r.cpu),
	})
}
