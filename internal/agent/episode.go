package agent

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"slowpath/internal/live"
)

// episode is an incident from its trigger on. All times are Unix seconds of the watch's clock.
type episode struct {
	id       string
	kinds    []Kind
	nodes    []string
	since    int64 // of the first call that counts
	fired    int64
	lastOn   int64 // of the last second in which a trigger was on
	counted  int64 // up to which slow and failed calls are counted
	slow     int64 // of them, so far
	failed   int64
	early    bool // a first verdict was asked for
	final    bool // the last one was asked for: the recording is complete
	judged   bool // and is there, or cannot be
	reported int64
}

// keeper carries out what episodes decide. Its methods return at once; judged is called when a judgement is done.
type keeper interface {
	begin(f Firing, start int64) (id string, err error)
	// judge judges [from, to). A final one is of an incident that ended at end. It must not call judged itself.
	judge(id string, from, to, end int64, final bool, judged func(cause string))
	extend(id string, end, slow, failed int64)
}

// episodes decide each second which incident begins, goes on and ends: one at a time, and what follows soon is part of
// it.
type episodes struct {
	mu         sync.Mutex
	keep       keeper
	triggers   *triggers
	limits     Settings
	now        int64 // the end of the complete seconds
	current    *episode
	renewAfter int64 // see mostRenewal; 0: the first one
	lastCause  string
	lastOn     int64 // of the incident before
	refused    error // why no incident could begin
}

// Times of an episode, in seconds.
const (
	// firstVerdict is after a trigger: most of what matters is in the recording then.
	firstVerdict = 3
	reportEvery  = 10
	// mostRenewal is how long after its trigger an incident that goes on, or comes back, becomes another one at the
	// latest, with a recording of what it is then. It begins with Longest, and is doubled while the cause is the same.
	mostRenewal = 60 * 60
)

// ErrNotYet says that nothing was watched that an incident could be made of.
var ErrNotYet = errors.New("nothing was watched yet: wait until a server is")

func (e *episodes) configure(s *Settings) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.limits = *s
	e.triggers = e.triggers.with(s)
}

// busy reports whether an incident is watched: its recording is not complete.
func (e *episodes) busy() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current != nil && !e.current.final
}

// going reports whether calls are slow or fail at the moment.
func (e *episodes) going() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current != nil && (!e.current.final || e.now-e.current.lastOn < calmWindow)
}

// ask begins an incident that somebody asks for. One whose recording is not complete is that one.
func (e *episodes) ask(reason string) (id string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.now == 0:
		return "", ErrNotYet
	case e.current != nil && !e.current.final:
		e.current.lastOn = e.now
		return e.current.id, nil
	}
	if err := e.begin([]Firing{{Kind: Asked, Since: e.now, Text: reason}}); err != nil {
		return "", err
	}
	return e.current.id, nil
}

// take takes the calls of complete seconds.
func (e *episodes) take(seconds []live.Second) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.triggers.add(seconds)
}

// step takes the complete seconds up to now.
func (e *episodes) step(now int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now < e.now { // the clock went back, as a clock may that was handed in: what was before is over
		e.finish()
		e.current = nil
	}
	e.now = now
	firing := e.triggers.firing(now, false)
	if e.current == nil {
		if len(firing) > 0 {
			e.refused = e.begin(firing)
		}
		return
	}
	e.goOn(firing)
}

// begin makes an incident of triggers. e.mu is held.
func (e *episodes) begin(firing []Firing) error {
	if e.now-e.lastOn >= max(seconds(e.limits.CoolDown), e.renewal()) {
		e.renewAfter, e.lastCause = 0, noCause
	}
	c := &episode{since: firing[0].Since, fired: e.now, lastOn: e.now}
	var texts []string
	for _, f := range firing {
		c.since = min(c.since, f.Since)
		c.add(f)
		texts = append(texts, f.Text)
	}
	all := firing[0]
	all.Text = strings.Join(texts[:min(len(texts), maxTexts)], "; ")
	id, err := e.keep.begin(all, c.since)
	if err != nil {
		return err
	}
	c.id, c.counted = id, c.since
	e.current = c
	e.count()
	return nil
}

// noCause is that of no incident: the first one of a kind has none before it.
const noCause = "-"

// maxTexts of triggers that set off an incident at the same time are said.
const maxTexts = 4

func (c *episode) add(f Firing) {
	if !slices.Contains(c.kinds, f.Kind) {
		c.kinds = append(c.kinds, f.Kind)
	}
	if f.Node != "" && !slices.Contains(c.nodes, f.Node) {
		c.nodes = append(c.nodes, f.Node)
	}
}

// goOn decides about the incident that is. e.mu is held.
func (e *episodes) goOn(firing []Firing) {
	c, s := e.current, e.limits
	for _, f := range firing {
		if !c.final {
			c.add(f)
		}
	}
	if len(e.triggers.firing(e.now, true)) > 0 {
		c.lastOn = e.now
	}
	e.count()
	since, calm := e.now-c.fired, e.now-c.lastOn
	switch {
	case !c.early && since >= firstVerdict:
		c.early = true
		e.judge(false)
	case !c.final && (since >= seconds(s.Longest) || since >= seconds(s.After) && calm >= calmWindow):
		c.final = true
		e.judge(true)
	case c.final && calm >= seconds(s.CoolDown) && since >= e.renewal():
		e.lastOn, e.current = c.lastOn, nil
	case c.final && calm == 0 && len(firing) > 0 && (c.judged && since >= e.renewal() || c.differs(firing)):
		e.lastOn = c.lastOn
		e.refused = e.begin(firing)
	}
}

// renewal is how long after its trigger an incident may become another one. e.mu is held.
func (e *episodes) renewal() int64 { return max(e.renewAfter, seconds(e.limits.Longest)) }

// differs reports whether something fires that did not before the incident had its verdict.
func (c *episode) differs(firing []Firing) bool {
	return slices.ContainsFunc(firing, func(f Firing) bool {
		return !slices.Contains(c.kinds, f.Kind) || !slices.Contains(c.nodes, f.Node)
	})
}

// count adds up the calls of the incident. e.mu is held.
func (e *episodes) count() {
	c := e.current
	nodes := c.nodes
	if len(nodes) == 0 {
		nodes = e.triggers.nodes()
	}
	before := c.slow + c.failed
	for _, node := range nodes {
		slow, failed := e.triggers.bad(node, c.counted, e.now)
		c.slow, c.failed = c.slow+slow, c.failed+failed
	}
	c.counted = e.now
	if c.slow+c.failed > before && e.now-c.reported >= reportEvery {
		c.reported = e.now
		e.keep.extend(c.id, c.end(), c.slow, c.failed)
	}
}

// end is where the calls that count ended, as far as it is known.
func (c *episode) end() int64 { return max(c.lastOn, c.since+1) }

// judge asks for a verdict. e.mu is held.
func (e *episodes) judge(final bool) {
	c := e.current
	if final {
		e.keep.extend(c.id, c.end(), c.slow, c.failed)
	}
	e.keep.judge(c.id, c.since-seconds(e.limits.Before), e.now, c.end(), final, func(cause string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		c.judged = c.judged || final
		switch {
		case !final:
		case cause == e.lastCause:
			e.renewAfter = min(2*e.renewal(), mostRenewal)
		default: // something else: the next recording is due soon again
			e.renewAfter, e.lastCause = 0, cause
		}
	})
}

// stop asks for the verdict of what is watched, since the agent stops.
func (e *episodes) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finish()
}

// finish asks for the last verdict of what is watched. e.mu is held.
func (e *episodes) finish() {
	if c := e.current; c != nil && !c.final {
		c.final = true
		e.judge(true)
	}
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
