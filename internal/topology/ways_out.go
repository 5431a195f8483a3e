package topology

import (
	"fmt"
	"time"
)

// WayOut is one way to make refreshes cheaper, and what of the main threads' time would be left.
type WayOut struct {
	ID       string   `json:"id"` // now, upgrade, cached-slots, replicas-only, longer-period, seeds-only, event-driven
	Title    string   `json:"title"`
	How      string   `json:"how"`
	Possible bool     `json:"possible"`
	Masters  float64  `json:"master_share"`  // of the time of a master's main thread, mean
	Replicas *float64 `json:"replica_share"` // of a replica's; null where there are none
	Saves    float64  `json:"saves"`         // of what the masters spend now, 0 to 1
	Note     string   `json:"note"`
}

const (
	seedsUsual = 3 // seeds that programs are given
	stretch    = 5 // times longer
)

// exits reckons the ways out for what is asked now.
type exits struct {
	d        demand
	m        *Model
	size     Size
	masters  float64 // share now
	replicas *float64
	perCall  time.Duration // now
	habit    habit
	out      []WayOut
}

// waysOut reckons each with the rate and the cost per call that were counted; where nobody was seen to refresh, with those of the question.
func waysOut(d demand, r *Refreshes, m *Model, sum MapSummary, list []Refresher, libs []Library) []WayOut {
	if m == nil && !d.seen {
		return []WayOut{}
	}
	e := &exits{d: d, m: m, size: sum.Size, out: []WayOut{}}
	if d.seen {
		e.perCall = time.Duration(r.dominant.PerCallNs)
	} else {
		e.perCall = m.at(sum.Size)
	}
	e.habit = habitAsked(d, r, list, libs)
	e.masters = d.perNode * e.perCall.Seconds()
	if mean, ok := meanShare(r.masters); ok && d.seen {
		e.masters = mean
	}
	if sum.Replicas > 0 {
		share := d.perNode * e.perCall.Seconds()
		if mean, ok := meanShare(r.spare); ok && d.seen {
			share = mean
		}
		e.replicas = &share
	}
	e.all(sum)
	return e.out
}

// habitAsked is that of the library that refreshes.
func habitAsked(d demand, r *Refreshes, list []Refresher, libs []Library) habit {
	if r.LettuceLike {
		return habits[0]
	}
	for _, l := range list {
		if h, ok := habitOf(l.Library); ok && l.Refreshes > 0 {
			return h
		}
	}
	for _, l := range libs {
		if h, ok := habitOf(l.Library); ok && h.everyone == d.everyone {
			return h
		}
	}
	return habit{}
}

func meanShare(list []NodeCost) (float64, bool) {
	sum := 0.0
	for _, c := range list {
		sum += c.Share
	}
	return sum / float64(max(1, len(list))), len(list) > 0
}

// add appends a way with the factors that remain of the masters' and of the replicas' time.
func (e *exits) add(w WayOut, masters, replicas float64) {
	w.Possible = true
	w.Masters = e.masters * masters
	w.Saves = 1 - masters
	if e.replicas != nil {
		share := *e.replicas * replicas
		w.Replicas = &share
	}
	e.out = append(e.out, w)
}

func (e *exits) not(id, title, why string) {
	e.out = append(e.out, WayOut{ID: id, Title: title, Note: why, Masters: e.masters, Replicas: e.replicas})
}

func (e *exits) all(sum MapSummary) {
	how := fmt.Sprintf("%s, %s per second and node, %s each", e.d.command, digits(e.d.perNode), span(e.perCall))
	note := ""
	if !e.d.seen {
		note = fmt.Sprintf("reckoned: %s, every %s", things(e.d.clients, "client"), interval(e.d.period))
	}
	e.add(WayOut{ID: "now", Title: "now", How: how, Note: note}, 1, 1)
	const upgrade = "upgrade the servers (Redis ≥ 7.0, Valkey)"
	if e.m == nil || e.m.Reference == "redis-5.0.6" || e.m.Reference == "redis-6.0.16" {
		e.upgrade("redis-7.0.15", "upgrade", upgrade, e.d.command, "the commands clients send stay as they are")
	} else {
		e.not("upgrade", upgrade, fmt.Sprintf("nothing to gain: since 6.2 %s passes over the slots once", e.d.command))
	}
	if e.d.command != Shards {
		title := "upgrade to Valkey ≥ 8 and ask CLUSTER SLOTS"
		if e.m != nil && e.m.Reference == cachedSlots {
			title = "ask CLUSTER SLOTS"
		}
		e.upgrade(cachedSlots, "cached-slots", title, Slots, "Valkey ≥ 8 caches the reply of SLOTS; after a change of the map the first call costs as before")
	}
	e.replicasOnly(sum)
	e.add(WayOut{ID: "longer-period", Title: fmt.Sprintf("ask every %s, not every %s", interval(e.d.period*stretch), interval(e.d.period)), How: e.habit.longer,
		Note: "moved slots are found by MOVED meanwhile"}, 1.0/stretch, 1.0/stretch)
	e.seedsOnly()
	e.eventDriven()
}

// upgrade compares the laws of two versions on the map as it is: what else is in the time per call (other work on the host's CPU) stays in the ratio.
func (e *exits) upgrade(to, id, title string, c Command, note string) {
	if e.m == nil {
		e.not(id, title, "the cost of this server's version is not known")
		return
	}
	now, ok1 := e.m.on(e.m.Reference, e.d.command, e.size)
	then, ok2 := e.m.on(to, c, e.size)
	if !ok1 || !ok2 {
		e.not(id, title, "not measured")
		return
	}
	factor := float64(then) / float64(now)
	if e.m.Reference == to && c == e.d.command || factor >= 0.9 { // within the error of the model
		e.not(id, title, fmt.Sprintf("nothing to gain: %s costs as much on %s", c, to))
		return
	}
	e.add(WayOut{ID: id, Title: title, How: fmt.Sprintf("%s: %s a call in place of %s", c, span(then), span(now)), Note: note}, factor, factor)
}

func (e *exits) replicasOnly(sum MapSummary) {
	const id, title = "replicas-only", "ask replicas only"
	if sum.Replicas == 0 {
		e.not(id, title, "there are no replicas")
		return
	}
	factor := 1.0 // who asks all nodes asks each replica as often as now
	if !e.d.everyone {
		factor = float64(e.size.Nodes) / float64(sum.Replicas)
	}
	how := e.habit.replicas
	if how == "" {
		how = "where the library can be told which nodes to ask"
	}
	e.add(WayOut{ID: id, Title: title, How: how, Note: "a replica may know of a change a moment later"}, 0, factor)
}

func (e *exits) seedsOnly() {
	const id, title = "seeds-only", "ask the seeds only"
	if !e.d.everyone {
		e.not(id, title, "each client asks one node already")
		return
	}
	if e.size.Nodes <= seedsUsual {
		e.not(id, title, "there are no more nodes than seeds")
		return
	}
	factor := float64(seedsUsual) / float64(e.size.Nodes)
	e.add(WayOut{ID: id, Title: title, How: e.habit.seeds, Note: fmt.Sprintf("with %d seeds; the seeds themselves stay as now", seedsUsual)}, factor, factor)
}

// eventDriven costs nothing while nothing changes; then each client asks once.
func (e *exits) eventDriven() {
	burst := time.Duration(float64(e.d.clients) * float64(e.perCall))
	if !e.d.everyone {
		burst /= time.Duration(max(1, e.size.Nodes))
	}
	e.add(WayOut{ID: "event-driven", Title: "ask on events only", How: e.habit.trigger,
		Note: fmt.Sprintf("%s of each node per change of the map, when %s ask once; a master that hangs without a word is found late", span(burst), things(e.d.clients, "client"))}, 0, 0)
}
