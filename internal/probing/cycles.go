package probing

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/term"

	"slowpath/internal/report/layout"
	"slowpath/internal/source/probe"
	"slowpath/internal/wire/target"
)

// Figures and columns of cycles that are no step.
const (
	figureCycle = "cycle" // from when it was due, without slowpath's own delay
	figureWait  = "wait"
	figureTotal = "total" // of a line: what the figure cycle counts
	figureOwn   = "own"
)

// cycles prints the cycles of a probe as they come.
type cycles struct {
	*probing
	fresh    string // head of the columns: of which connections
	columns  []string
	beside   int // so many of the columns, the last ones, are of what runs beside a cycle
	echoes   [][]probe.Echo
	lateness []*probe.Lateness
	rows     chan cycleRow
	printed  int
}

// waitingCycles may wait for stdout: a terminal that is stopped for a while must not hold the probe up.
const waitingCycles = 65536

// beginEach prepares the cycles: what runs beside them, and where.
func (p *probing) beginEach(ctx context.Context) error {
	e := &p.flags.Each
	c := &cycles{probing: p, rows: make(chan cycleRow, waitingCycles), echoes: make([][]probe.Echo, len(p.hops))}
	if len(e.Pin) > 0 {
		if err := pinProcess(e.Pin[0]); err != nil {
			return err
		}
	}
	for _, cpu := range e.Pin {
		l, err := probe.WatchLateness(ctx, p.clock, cpu)
		if err != nil {
			return err
		}
		c.lateness = append(c.lateness, l)
	}
	if e.Ping {
		if err := c.beginEchoes(ctx); err != nil {
			return err
		}
	}
	c.nameColumns()
	p.each = c
	return nil
}

// beginEchoes finds where the echoes go, and which are possible.
func (c *cycles) beginEchoes(ctx context.Context) error {
	for i, h := range c.hops {
		addrs, err := target.Resolve(ctx, h.target)
		if err != nil {
			return err
		}
		c.echoes[i] = []probe.Echo{probe.TCPEcho(addrs[0])}
		if e, err := probe.ICMPEcho(addrs[0].Addr()); err == nil {
			c.echoes[i] = append(c.echoes[i], e)
		} else if i == 0 {
			c.app.Say(fmt.Sprintf("no ICMP echo beside the cycles: %s; run as root, or have this user's group in "+
				"the sysctl net.ipv4.ping_group_range", layout.OneLine(err.Error())))
		}
	}
	return nil
}

// nameColumns lists what a line has: what any of the hops needs.
func (c *cycles) nameColumns() {
	e := &c.flags.Each
	c.columns, c.fresh = []string{figureWait}, "KEPT CONNECTION"
	steps := slices.Clone(e.steps)
	if slices.ContainsFunc(c.hops, func(h hop) bool { return slices.Contains(e.stepsOf(h), probe.StepPing) }) &&
		!slices.Contains(steps, probe.StepPing) {
		steps = append(steps, probe.StepPing) // of nodes that serve no key
	}
	if e.fresh {
		c.fresh = "NEW CONNECTIONS"
		steps = slices.DeleteFunc(steps, func(s string) bool { return s == probe.StepAuth })
		c.columns = c.phases()
	}
	c.columns = append(append(c.columns, steps...), figureTotal, figureOwn)
	before := len(c.columns)
	if e.Ping {
		c.columns = append(c.columns, probe.EchoTCP)
		if slices.ContainsFunc(c.echoes, func(list []probe.Echo) bool { return len(list) > 1 }) {
			c.columns = append(c.columns, probe.EchoICMP)
		}
	}
	for _, cpu := range e.Pin {
		c.columns = append(c.columns, cpuName(cpu))
	}
	c.beside = len(c.columns) - before
}

// phases are the columns of a new connection, on which nothing is waited for before its send.
func (c *cycles) phases() (columns []string) {
	if slices.ContainsFunc(c.hops, func(h hop) bool { return isName(h.target) }) {
		columns = append(columns, "dns")
	}
	columns = append(columns, stepConnect)
	if slices.ContainsFunc(c.hops, func(h hop) bool { return h.target.TLS != nil }) {
		columns = append(columns, "tls")
	}
	if slices.Contains(c.flags.Each.steps, probe.StepAuth) {
		return append(columns, probe.StepAuth)
	}
	return append(columns, "handshake")
}

func isName(t target.Target) bool {
	_, err := netip.ParseAddr(t.Host)
	return t.Network == "tcp" && err != nil
}

func cpuName(cpu int) string { return "cpu" + strconv.Itoa(cpu) }

// options are those of the probe of a hop.
func (c *cycles) options(o *probe.Options, hop int, t *tally) {
	e := &c.flags.Each
	o.Steps, o.Beside, o.OnCall, o.OnPhases = e.stepsOf(c.hops[hop]), c.echoes[hop], nil, nil
	o.FreshRate = 0
	if e.fresh {
		o.Rate, o.FreshRate = 0, o.Rate
	}
	t.names = append([]string{figureCycle}, c.columns...)
	t.names = slices.DeleteFunc(t.names, func(name string) bool { return name == figureTotal })
	o.OnCycle = func(cycle probe.Cycle) {
		r := c.row(cycle)
		t.cycle(r, e.Slow)
		select {
		case c.rows <- r:
		default:
			t.miss(missedPrint, 1)
		}
	}
}

// missedPrint is why a cycle has no line: stdout was too slow for it.
const missedPrint = "stdout"

const cycleSchema = "slowpath.probe-cycle/v1"

// cycleRow is a document slowpath.probe-cycle/v1. Times are in nanoseconds.
type cycleRow struct {
	Schema  string           `json:"schema"`
	Address string           `json:"address"`
	Conn    string           `json:"conn"` // kept or fresh
	Due     time.Time        `json:"due"`
	Ns      int64            `json:"ns"`      // from when it was due to its end, without own_ns
	WaitNs  int64            `json:"wait_ns"` // from when it was due to its send: the connection was not free
	Steps   []cycleStep      `json:"steps"`
	OwnNs   int64            `json:"own_ns"` // slowpath itself was late
	Slow    string           `json:"slow"`   // what took longest, if the cycle was slow
	Error   string           `json:"error"`
	Beside  map[string]int64 `json:"beside_ns"` // tcp, icmp: time of the echo; absent: no answer within a second
	Late    map[string]int64 `json:"late_ns"`   // by CPU of --pin: for how long a thread of slowpath would not have run
	ownLate bool             // the CPU of the probe was not there for half of the time
}

type cycleStep struct {
	Step  string `json:"step"`
	Ns    int64  `json:"ns"`
	Error string `json:"error"`
}

// row is a cycle with what was seen beside it.
func (c *cycles) row(of probe.Cycle) cycleRow {
	r := cycleRow{
		Schema: cycleSchema, Address: of.Node, Conn: of.Conn, Due: time.Unix(0, of.DueNs).UTC(), Ns: int64(of.Felt()),
		WaitNs: int64(of.Wait), Steps: []cycleStep{}, OwnNs: int64(of.Own), Error: of.Error,
		Beside: map[string]int64{}, Late: map[string]int64{},
	}
	longest, slowest := r.WaitNs, figureWait
	for _, s := range of.Steps {
		r.Steps = append(r.Steps, cycleStep{s.Step, int64(s.Took), s.Error})
		if int64(s.Took) > longest {
			longest, slowest = int64(s.Took), s.Step
		}
	}
	if of.Felt() >= c.flags.Each.Slow {
		r.Slow = slowest
	}
	for name, took := range of.Beside {
		r.Beside[name] = int64(took)
	}
	from := of.SentNs - r.WaitNs // from here on time counts, but for own delays
	for i, l := range c.lateness {
		late := int64(l.Within(from, of.EndNs))
		r.Late[strconv.Itoa(l.CPU)] = late
		excluded := of.EndNs - from - r.Ns
		r.ownLate = r.ownLate || i == 0 && r.Slow != "" && late-excluded >= r.Ns/2
	}
	return r
}

// show prints cycles until the probes have ended.
func (c *cycles) show(ended <-chan struct{}) error {
	for {
		select {
		case r := <-c.rows:
			if err := c.print(r); err != nil {
				return err
			}
		case <-ended:
			for len(c.rows) > 0 {
				if err := c.print(<-c.rows); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

func (c *cycles) print(r cycleRow) error {
	out := c.app.Stdout
	if c.flags.AsJSON {
		return layout.JSONLine(out, "a cycle", r)
	}
	text := c.line(r)
	if f, ok := out.(*os.File); c.printed == 0 || c.printed%linesPerHead == 0 && ok && term.IsTerminal(int(f.Fd())) {
		text = c.head() + text
	}
	c.printed++
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("writing a cycle: %w", err)
	}
	return nil
}
