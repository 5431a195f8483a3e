package random

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/traffic"
	"slowpath/internal/outfile"
)

// stage is a drawn scenario that runs.
type stage struct {
	scenario.Stage
	drawn   Drawn
	lab     *scenario.Lab
	addrs   []string // that the callers dial
	target  []string // that slowpath watches, with its options
	prefix  []string // of the callers' commands
	callers []caller
	others  clients.Summary  // of the callers that only LostNs counts, but for its slices
	slices  *protocol.Slices // of these, while they run
	options clients.Options  // of the first caller, without a fault
	on      []*scenario.Lab  // of each fault while it is on
}

// The CLIENT SETNAMEs of callers. The proxy loses replies of the first ones only: they have a timeout then.
const (
	callersName = "orders"
	secondName  = "stock"
)

// build makes everything but the faults.
func build(ctx context.Context, l *scenario.Lab, s Drawn) (*stage, error) {
	st := &stage{drawn: s, lab: l, on: make([]*scenario.Lab, len(s.Faults))}
	for _, step := range []func(context.Context) error{
		st.startServer, st.startPath, st.fill, st.startOthers, st.startNoise, st.startCallers,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return st, nil
}

// needs tells whether a fault needs something.
func (s *stage) needs(what func(scenario.Needs) bool) bool {
	return slices.ContainsFunc(s.drawn.Faults, func(f Fault) bool { return what(f.kind().Needs) })
}

func (s *stage) oneCPU() bool { return s.needs(func(n scenario.Needs) bool { return n.OneCPU }) }

func (s *stage) startServer(ctx context.Context) (err error) {
	var spec fleet.Spec
	if s.oneCPU() {
		spec.CPUs = []int{0}
	}
	for _, f := range s.drawn.Faults {
		if config := f.kind().Config; config != nil {
			spec.Config = append(spec.Config, config(s.lab, f.Strength)...)
		}
	}
	for _, f := range s.drawn.Faults {
		if change := f.kind().Server; change != nil {
			if err := change(ctx, s.lab, &s.Stage, &spec); err != nil {
				return err
			}
		}
	}
	err = s.startTopology(ctx, spec)
	if spec.Log != nil { // the server has it now
		err = errors.Join(err, spec.Log.Close())
	}
	if err != nil {
		return err
	}
	if s.needs(func(n scenario.Needs) bool { return n.Quota }) {
		if s.Quota, err = fault.CPUCgroup(s.lab, "server", 0); err == nil {
			err = s.Quota.Add(s.Server.PID)
		}
	}
	return err
}

func (s *stage) startTopology(ctx context.Context, spec fleet.Spec) (err error) {
	l := s.lab
	switch s.drawn.Topology {
	case scenario.Clustered:
		// nodes that are busy for seconds keep their slots
		spec.Config = append(spec.Config, "cluster-node-timeout 60000")
		var c *fleet.Cluster
		if c, err = l.Cluster(ctx, 3, 0, spec); err != nil {
			return err
		}
		s.Cluster = c
		s.Server, s.addrs, s.target = c.Nodes[0], c.Addrs(), []string{c.Nodes[0].Addr}
		return nil
	case scenario.Replicated:
		s.Server, err = l.Replicated(ctx, spec)
	case scenario.SlowDisk:
		if s.Disk, err = fault.NewSlowDisk(ctx, l, 0); err == nil {
			s.Server, err = l.StartOn(ctx, s.Disk, append(spec.Config, "appendfsync everysec")...)
		}
	case scenario.Namespaced:
		if s.NetNS, err = fault.NewNetNS(ctx, l); err == nil {
			spec.NetNS, spec.Bind = s.NetNS.Name, s.NetNS.Addr
			s.Server, err = l.Start(ctx, spec)
		}
	case scenario.Encrypted:
		spec.TLS, spec.RSA = true, 2048
		fallthrough
	default:
		s.Server, err = l.Start(ctx, spec)
	}
	if err == nil {
		s.addrs, s.target = []string{s.Server.Addr}, []string{s.Server.Addr}
	}
	return err
}

// startPath makes what is between the callers and the server.
func (s *stage) startPath(ctx context.Context) (err error) {
	switch s.drawn.Topology {
	case scenario.Encrypted:
		s.TLS, s.target = true, []string{"rediss://" + s.Server.Addr, "--insecure"}
	case scenario.Proxied:
		s.Delay = time.Duration(s.drawn.DelayMs * float64(time.Millisecond))
		s.Proxy = &fault.Proxy{Server: s.Server.Addr, ReplyDelay: s.Delay, LoseOf: callersName}
		addr, err := s.Proxy.Start(ctx, s.lab)
		if err != nil {
			return err
		}
		s.addrs, s.target = []string{addr}, []string{addr}
	}
	if s.needs(func(n scenario.Needs) bool { return n.Names }) {
		s.Names = &fault.NameServer{}
		s.prefix, err = s.Names.Start(s.lab)
		s.addrs = []string{fault.ByName(s.addrs[0])}
	}
	return err
}

// fill stores what the callers read, and what the faults need.
func (s *stage) fill(ctx context.Context) error {
	if s.drawn.Topology != scenario.Clustered { // there the callers' own writes do
		if err := scenario.FillDocuments(ctx, s.Server, s.drawn.Callers[0].Items); err != nil {
			return err
		}
	}
	for _, f := range s.drawn.Faults {
		if prepare := f.kind().Prepare; prepare != nil {
			if err := prepare(ctx, s.lab, &s.Stage, f.Strength); err != nil {
				return fmt.Errorf("preparing %s: %w", f.Name, err)
			}
		}
	}
	return nil
}

func (s *stage) startOthers(ctx context.Context) error {
	command := traffic.Mixed(1000)
	if s.drawn.Topology == scenario.Clustered {
		command = traffic.Always("PING") // keys would be at other nodes
	}
	if s.drawn.Others.Connections > 0 {
		start := time.Now()
		s.others.StartUnix, s.slices = start.UnixNano(), protocol.NewSlices(start, slice)
		s.lab.Load(ctx, traffic.Spec{
			Addr: s.Server.Addr, TLS: s.TLS, Name: "others", Conns: s.drawn.Others.Connections,
			Rate:    s.drawn.Others.PerSecond,
			Command: command, Took: func(d time.Duration) { s.slices.Add(time.Now().Add(-d), d) },
		})
	}
	return nil
}

func (s *stage) startNoise(ctx context.Context) error {
	if s.drawn.Noise.CPUShare > 0 {
		return s.lab.Spin(s.drawn.Noise.CPUShare)
	}
	if s.drawn.Noise.DiskMBPerSecond == 0 {
		return nil
	}
	const each = 250 * time.Millisecond
	block := make([]byte, int(s.drawn.Noise.DiskMBPerSecond*each.Seconds()*(1<<20)))
	file, err := outfile.Create(filepath.Join(s.Server.Dir, "noise"))
	if err != nil {
		return err
	}
	s.lab.Defer(func(context.Context) error { return file.Close() })
	s.lab.Every(ctx, each, func(context.Context) error {
		if _, err := file.WriteAt(block, 0); err != nil {
			return err
		}
		return file.Sync()
	})
	return nil
}

func (s *stage) startCallers(ctx context.Context) (err error) {
	var cgroup *fault.Cgroup
	if slices.ContainsFunc(s.drawn.Faults, func(f Fault) bool { return f.Cause == "client-cfs-throttled" }) {
		if cgroup, err = fault.CPUCgroup(s.lab, "caller", 0); err != nil {
			return err
		}
		s.ClientQuota = cgroup
	}
	for i, c := range s.drawn.Callers {
		spec := scenario.ClientSpec{Program: c.Program, Options: s.optionsOf(c)}
		if s.oneCPU() {
			spec.CPU = fmt.Sprint(min(1, runtime.NumCPU()-1))
		}
		if i == 0 {
			for _, f := range s.drawn.Faults {
				if base := f.kind().Base; base != nil {
					base(&spec.Options, f.Strength)
				}
			}
			s.options, spec.Cgroup, spec.Prefix = spec.Options, cgroup, s.prefix
		} else {
			spec.Options.Name = secondName
			if s.Names != nil {
				spec.Options.Addresses = []string{s.Server.Addr}
			}
		}
		started, err := s.startCaller(ctx, spec)
		if err != nil {
			return err
		}
		s.callers = append(s.callers, started)
	}
	return nil
}

func (s *stage) optionsOf(c Caller) clients.Options {
	o := clients.Options{
		Addresses: s.addrs, Name: callersName, TLS: s.TLS, Keys: scenario.Documents, Slice: slice,
		Commands: []clients.Command{
			{Args: []string{"GET", "doc:{n}"}, Weight: c.Reads},
			{Args: []string{"SET", "doc:{n}", scenario.Document(c.Items)}},
		},
		Workers: c.Workers, Rate: c.PerSecond, Random: c.Poisson, PoolSize: c.Workers + 2, MaxIdle: c.Workers + 2,
	}
	if s.drawn.Topology == scenario.Clustered {
		o.Mode = protocol.Cluster
	}
	return o
}

// set switches faults on and off, until those are on that are bits of mask.
func (s *stage) set(ctx context.Context, mask int) error {
	options, changed := s.options, false
	for i, f := range s.drawn.Faults {
		kind, want := f.kind(), mask>>i&1 == 1
		if want && kind.Caller != nil {
			kind.Caller(&options, f.Strength)
		}
		if want == (s.on[i] != nil) {
			continue
		}
		changed = changed || kind.Caller != nil
		if err := s.toggle(ctx, i, want); err != nil {
			return fmt.Errorf("switching %s: %w", f.Name, err)
		}
	}
	if changed {
		return s.callers[0].change(options)
	}
	return nil
}

// toggle switches one fault.
func (s *stage) toggle(ctx context.Context, i int, on bool) error {
	if !on {
		part := s.on[i]
		s.on[i] = nil
		return part.Close(ctx)
	}
	s.on[i] = s.lab.Part()
	if make := s.drawn.Faults[i].kind().On; make != nil {
		return make(ctx, s.on[i], &s.Stage, s.drawn.Faults[i].Strength)
	}
	return nil
}
