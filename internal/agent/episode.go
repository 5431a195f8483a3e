package agent

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"slowpath/internal/live"
)

// episode is an incident from its trigger on: calls of some nodes that are slow or fail for one cause. All times are
// Unix seconds of the watch's clock.
type episode struct {
	id       string
	kinds    []Kind
	nodes    []string // whose calls are slow or fail; none: that of all that are watched
	since    int64    // when the calls began that count
	fired    int64
	lastOn   int64 // of the last second in which a trigger was on
	lastBad  int64 // the last second in which calls ended that count
	mostNs   int64 // of the longest of them
	counted  int64 // up to which slow and failed calls are counted
	slow     int64 // of them, so far
	failed   int64
	early    bool // a first verdict was asked for
	final    bool // the last one was asked for: the recording is complete
	judged   bool // and is there, or cannot be
	reported int64
	causes   map[string]bool // that its verdicts found
	patience int64           // for how many seconds without a trigger it waits until it is over

	// What goes on after the last verdict, or comes back, is looked at again: it may be another fault.
	back     comeback
	lookFrom int64 // the begin of what is to be looked at; 0: nothing
	lookAt   int64 // when
	again    int   // how often it was looked at, and nothing found for sure
	looked   int64 // when it was looked at last
	apart    int64 // seconds between two looks at the same
	looking  bool
}

// comeback is when calls were slow or failed again after a calm time, and what was known of the incident until then.
type comeback struct {
	since, lastBad, mostNs int64
	slow, failed           int64
}

// found is what a verdict found: the causes of its findings, the first one first. None where it found nothing, or is
// not sure of the first.
type found struct {
	causes []string
	sure   bool
}

// span is a time in Unix seconds: [from, to).
type span struct{ from, to int64 }

// keeper carries out what episodes decide. Its methods return at once; functions that they are handed are called when
// a judgement is done, and never by the method itself.
type keeper interface {
	begin(f Firing, nodes []string, start int64) (id string, err error)
	// judge judges the calls of nodes in a time. A final one is of an incident that ended at end.
	judge(id string, nodes []string, s span, end int64, final bool, judged func(found))
	// look judges them as well, and keeps nothing.
	look(id string, nodes []string, s span, seen func(found))
	extend(id string, end, slow, failed int64)
}

// episodes decide each second which incidents begin, go on and end. Nodes whose calls begin to be slow at the same time
// are one incident, others are apart.
type episodes struct {
	mu       sync.Mutex
	keep     keeper
	triggers *triggers
	limits   Settings
	now      int64 // the end of the complete seconds
	current  []*episode
	past     []*episode // that are over, the last ones
	refused  error      // why no incident could begin
}

// Times of an episode, in seconds.
const (
	// firstVerdict is after a trigger: most of what matters is in the recording then.
	firstVerdict = 3
	reportEvery  = 10
	// together is how far the begins of two nodes may be apart in one incident.
	together = 3
	// leastApart and mostApart are between two looks at what goes on. The time is doubled while the cause is the same.
	leastApart, mostApart = 30, 10 * 60
	// mostPatience is for how long what comes back for the same cause is the same incident, at the most.
	mostPatience = 60 * 60
	// mostAgain is how often a time is looked at again, as nothing was found for sure: more of it is there then.
	mostAgain = 2
	// worse is how many times as long as all calls before a call is, that is looked at at once.
	worse = 3
)

// Bounds of what is remembered.
const (
	mostCurrent = 16
	mostPast    = 16
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
	return slices.ContainsFunc(e.current, func(c *episode) bool { return !c.final })
}

// going reports whether calls are slow or fail at the moment.
func (e *episodes) going() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.current, func(c *episode) bool { return !c.final || e.now-c.lastOn < calmWindow })
}

// ask begins an incident that somebody asks for. One whose recording is not complete is that one.
func (e *episodes) ask(reason string) (id string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.now == 0 {
		return "", ErrNotYet
	}
	for _, c := range e.current {
		if !c.final {
			c.lastOn = e.now
			return c.id, nil
		}
	}
	c, err := e.begin([]Firing{{Kind: Asked, Since: e.now, Text: reason}})
	if err != nil {
		return "", err
	}
	return c.id, nil
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
	firing, goesOn := e.triggers.firing(now, false), e.triggers.firing(now, true)
	for _, c := range slices.Clone(e.current) {
		e.goOn(c, c.take(&firing), c.take(&goesOn))
	}
	slices.SortFunc(firing, func(a, b Firing) int { return int(a.Since - b.Since) })
	for len(firing) > 0 {
		n := 1
		for n < len(firing) && firing[n].Since-firing[0].Since <= together {
			n++
		}
		e.join(firing[:n])
		firing = firing[n:]
	}
}

// take takes from all what is of the incident.
func (c *episode) take(all *[]Firing) (mine []Firing) {
	var others []Firing
	for _, f := range *all {
		if slices.Contains(c.nodes, f.Node) || slices.Contains(c.kinds, Asked) && !c.final {
			mine = append(mine, f)
		} else {
			others = append(others, f)
		}
	}
	*all = others
	return mine
}

// join makes nodes whose calls began to be slow at the same time a part of the incident that began then, too, or
// another one. e.mu is held.
func (e *episodes) join(firing []Firing) {
	for _, c := range e.current {
		if apart := firing[0].Since - c.since; !c.final && max(apart, -apart) <= together {
			for _, f := range firing {
				c.add(f)
			}
			return
		}
	}
	if len(e.current) < mostCurrent {
		_, e.refused = e.begin(firing)
	}
}

// begin makes an incident of triggers. e.mu is held.
func (e *episodes) begin(firing []Firing) (*episode, error) {
	c := &episode{
		since: firing[0].Since, fired: e.now, lastOn: e.now, causes: map[string]bool{}, apart: leastApart,
		patience: seconds(e.limits.CoolDown),
	}
	var texts []string
	for _, f := range firing {
		c.since = min(c.since, f.Since)
		c.add(f)
		texts = append(texts, f.Text)
	}
	all := firing[0]
	all.Text = strings.Join(texts[:min(len(texts), maxTexts)], "; ")
	id, err := e.keep.begin(all, c.nodes, c.since)
	if err != nil {
		return nil, err
	}
	c.id, c.counted = id, c.since
	e.current = append(e.current, c)
	e.count(c)
	return c, nil
}

// maxTexts of triggers that set off an incident at the same time are said.
const maxTexts = 4

func (c *episode) add(f Firing) {
	if !slices.Contains(c.kinds, f.Kind) {
		c.kinds = append(c.kinds, f.Kind)
	}
	if f.Node != "" && !slices.Contains(c.nodes, f.Node) {
		c.nodes = append(c.nodes, f.Node)
	}
	c.lastBad, c.mostNs = max(c.lastBad, f.Last), max(c.mostNs, f.Most)
}

// goOn decides about an incident: firing is what is on at its nodes, goesOn what is on in a short time before now. e.mu
// is held.
func (e *episodes) goOn(c *episode, firing, goesOn []Firing) {
	s := e.limits
	if len(goesOn) > 0 && e.now-c.lastOn >= calmWindow {
		c.back = comeback{goesOn[0].Since, c.lastBad, c.mostNs, c.slow, c.failed}
	}
	e.lookDue(c, firing, goesOn)
	for _, f := range firing {
		c.add(f)
	}
	if len(goesOn) > 0 {
		c.lastOn = e.now
	}
	e.count(c)
	since, calm := e.now-c.fired, e.now-c.lastOn
	switch {
	case !c.early && since >= firstVerdict:
		c.early = true
		e.judge(c, false)
	case !c.final && (since >= seconds(s.Longest) || since >= seconds(s.After) && calm >= calmWindow):
		c.final, c.looked = true, e.now
		e.judge(c, true)
	case c.judged && c.lookFrom != 0 && !c.looking && e.now >= c.lookAt:
		e.look(c)
	case c.final && calm >= c.patience && c.lookFrom == 0:
		e.over(c)
	}
}

// over ends an incident. e.mu is held.
func (e *episodes) over(c *episode) {
	e.current = slices.DeleteFunc(e.current, func(one *episode) bool { return one == c })
	e.past = append(e.past, c)
	e.past = e.past[max(0, len(e.past)-mostPast):]
}

// count adds up the calls of an incident. e.mu is held.
func (e *episodes) count(c *episode) {
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
func (c *episode) end() int64 { return max(c.lastBad, c.since) + 1 }

// judge asks for a verdict. e.mu is held.
func (e *episodes) judge(c *episode, final bool) {
	if final {
		e.keep.extend(c.id, c.end(), c.slow, c.failed)
	}
	e.keep.judge(c.id, c.nodes, span{c.since, e.now}, c.end(), final, func(f found) {
		e.mu.Lock()
		defer e.mu.Unlock()
		c.judged = c.judged || final
		for _, cause := range f.causes {
			c.causes[cause] = true
		}
		if final && f.sure {
			e.remember(c, f.causes[0])
		}
	})
}

// remember has an incident for the same cause as one before it wait longer until it is over: what comes back each
// minute, all day, makes few incidents. e.mu is held.
func (e *episodes) remember(c *episode, cause string) {
	for _, p := range e.past {
		if p.causes[cause] && c.since-p.lastOn <= 2*p.patience &&
			slices.ContainsFunc(c.nodes, func(n string) bool { return slices.Contains(p.nodes, n) }) {
			c.patience = max(c.patience, e.longer(p.patience))
		}
	}
}

// longer is the patience after another one. e.mu is held.
func (e *episodes) longer(patience int64) int64 {
	return max(min(max(2*patience, seconds(e.limits.Longest)), mostPatience), patience)
}

// stop asks for the verdict of what is watched, since the agent stops.
func (e *episodes) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finish()
}

// finish asks for the last verdict of what is watched. e.mu is held.
func (e *episodes) finish() {
	for _, c := range e.current {
		if !c.final {
			c.final = true
			e.judge(c, true)
		}
	}
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
