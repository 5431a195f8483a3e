package probe

import (
	"context"
	"slices"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/wire/session"
)

// Steps of a cycle: a command each. Before those of a fresh connection come its phases: dns, connect, tls, and the
// login, which is called handshake, or auth where StepAuth is wanted.
const (
	StepAuth = "auth"
	StepPing = "ping"
	StepGet  = "get" // of a key that does not exist, or of that of StepSet
	StepSet  = "set" // of a key of slowpath's own, which expires
	StepDel  = "del" // of that key
)

// NotSent is the Cycle.Error of a cycle that was not sent: cycles before it had not come back. Its wait counts.
const NotSent = "not sent"

// writtenFor is how long the key of StepSet lives, in seconds.
const writtenFor = "60"

// Cycle is what the steps of one slot took.
type Cycle struct {
	Node   string
	Conn   string // Kept or Fresh
	DueNs  int64
	SentNs int64
	EndNs  int64
	// Wait is from when it was due to its send: the connection was not free, or not open.
	Wait  time.Duration
	Steps []StepTime
	// Own is what this process itself was late by: it is in no other time.
	Own   time.Duration
	Error string // NotSent, Unfinished, or of the first step that has one
	// Beside is what the echoes took, by name; without one, there was no answer in time.
	Beside map[string]time.Duration
}

// StepTime is one step, or phase, of a cycle.
type StepTime struct {
	Step  string
	Took  time.Duration
	Error string
}

// Felt is the time of the cycle from when it was due, without that in which this process itself was late.
func (c Cycle) Felt() time.Duration {
	felt := c.Wait
	for _, s := range c.Steps {
		felt += s.Took
	}
	return felt
}

// writes reports whether the cycles change data: a key of slowpath's own.
func (p *prober) writes() bool {
	return slices.Contains(p.Steps, StepSet) || slices.Contains(p.Steps, StepDel)
}

// removeFor bounds how long removing the key takes at the end.
const removeFor = time.Second

// removeWritten removes the key that the cycles wrote: the last ones may have been cut before they did. A server that
// does not answer removes it by itself after a minute.
func (p *prober) removeWritten(ctx context.Context) {
	if !slices.Contains(p.Steps, StepSet) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removeFor)
	defer cancel()
	s, _, err := p.open(ctx)
	if err != nil {
		return
	}
	defer s.Close()
	_, _, _ = s.DoTimed(ctx, p.commandOf(StepDel)...)
}

// commandOf is what a step sends.
func (p *prober) commandOf(step string) []string {
	switch step {
	case StepAuth:
		if p.Target.User != "" {
			return []string{"AUTH", p.Target.User, p.Target.Password}
		}
		return []string{"AUTH", p.Target.Password}
	case StepGet:
		if slices.Contains(p.Steps, StepSet) {
			return []string{"GET", p.writtenKey}
		}
		return []string{"GET", randomKey(p.HashTag)}
	case StepSet:
		return []string{"SET", p.writtenKey, "written by slowpath probe", "EX", writtenFor}
	case StepDel:
		return []string{"DEL", p.writtenKey}
	default:
		return []string{"PING"}
	}
}

// first is the first command of a slot.
func (p *prober) first(k int64) []string {
	if len(p.Steps) > 0 {
		return p.commandOf(p.Steps[0])
	}
	return p.command(k)
}

// cycle makes the steps of a slot on the kept connection. It returns when the connection was free again, zero where it
// broke.
func (p *prober) cycle(ctx context.Context, s *session.Session, d due, cc callContext) (freeNs int64) {
	c := Cycle{Node: p.Node, Conn: Kept, DueNs: d.atNs}
	beside := p.beside(ctx)
	dueNs, free := d.atNs, cc.freeNs
	for i, step := range p.Steps {
		cc.freeNs = free
		m := p.call(ctx, s, p.commandOf(step), dueNs, cc)
		if m.EndNs == 0 { // the watch has ended
			return 0
		}
		if i == 0 {
			c.SentNs = m.StartNs
			c.Wait = time.Duration(m.StartNs - d.atNs - ownDelay(*cc.own, d.atNs, m.StartNs))
		}
		c.add(step, took(m.timing), m.Error)
		c.EndNs = m.EndNs
		if dueNs, free = m.freeNs, m.freeNs; free == 0 {
			break
		}
	}
	p.report(c, beside)
	return free
}

// freshCycle is a cycle on a connection of its own.
func (p *prober) freshCycle(ctx context.Context, dueNs int64) {
	login, steps := "handshake", p.Steps
	if i := slices.Index(steps, StepAuth); i >= 0 {
		login, steps = StepAuth, slices.Delete(slices.Clone(steps), i, i+1)
	}
	c := Cycle{Node: p.Node, Conn: Fresh, DueNs: dueNs}
	beside := p.beside(ctx)
	f := p.openAndCall(ctx, dueNs, p.commandOf(steps[0]))
	if f.session != nil {
		defer f.session.Close()
	}
	c.SentNs, c.EndNs = f.StartNs, f.EndNs
	for _, phase := range []StepTime{
		{Step: "dns", Took: f.phases.DNS},
		{Step: "connect", Took: f.phases.Connect},
		{Step: "tls", Took: f.phases.TLS},
		{Step: login, Took: f.phases.Handshake},
	} {
		if phase.Took > 0 {
			c.add(phase.Step, phase.Took, "")
		}
	}
	if f.session != nil {
		c.add(steps[0], took(f.timing), f.Error)
	} else if c.Error = f.Error; len(c.Steps) > 0 {
		c.Steps[len(c.Steps)-1].Error = f.Error
	}
	if !f.broken {
		p.restOf(ctx, &c, f.session, steps[1:])
	}
	p.report(c, beside)
}

// restOf makes the steps after the first on a fresh connection.
func (p *prober) restOf(ctx context.Context, c *Cycle, s *session.Session, steps []string) {
	cc := callContext{conn: Fresh, freeNs: c.EndNs, own: &delays{}}
	for _, step := range steps {
		began := p.Clock.Now()
		m := p.call(ctx, s, p.commandOf(step), cc.freeNs, cc)
		if m.EndNs == 0 {
			c.EndNs = p.Clock.Now()
			c.add(step, time.Duration(c.EndNs-began), Unfinished)
			return
		}
		c.add(step, took(m.timing), m.Error)
		c.EndNs = m.EndNs
		if cc.freeNs = m.freeNs; cc.freeNs == 0 {
			return
		}
	}
}

// took is the time of a call without that in which its reply waited for this process.
func took(t session.Timing) time.Duration { return t.End.Sub(t.Sent) - t.ReadDelay }

func (c *Cycle) add(step string, took time.Duration, err string) {
	c.Steps = append(c.Steps, StepTime{step, max(took, 0), err})
	if c.Error == "" {
		c.Error = err
	}
}

// notMade reports a cycle of the kept connection that was due and not made, with its wait.
func (p *prober) notMade(call recording.Call, why string, own delays) {
	if len(p.Steps) == 0 {
		return
	}
	late := ownDelay(own, call.IntendedNs, call.EndNs)
	p.report(Cycle{
		Node: p.Node, Conn: Kept, DueNs: call.IntendedNs, SentNs: call.EndNs, EndNs: call.EndNs, Error: why,
		Wait: time.Duration(call.EndNs - call.IntendedNs - late),
	}, nil)
}

// endedCycle waits for what runs beside it.
type endedCycle struct {
	Cycle
	beside func() map[string]time.Duration // nil: nothing
}

// report passes on a cycle, in order of their ends, without waiting for what runs beside it.
func (p *prober) report(c Cycle, beside func() map[string]time.Duration) {
	c.Own = max(time.Duration(c.EndNs-c.DueNs)-c.Felt(), 0)
	p.ended <- endedCycle{c, beside}
}

// waitingCycles may wait for what runs beside them.
const waitingCycles = 4096

// passOn calls OnCycle until no cycle follows.
func (p *prober) passOn() {
	for c := range p.ended {
		if c.beside != nil {
			c.Beside = c.beside()
		}
		if p.OnCycle != nil {
			p.OnCycle(c.Cycle)
		}
	}
}
