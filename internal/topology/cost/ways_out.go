package cost

import (
	"fmt"
	"time"

	"slowpath/internal/format"
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
	c        *Cluster
	m        *Model
	replicas *float64 // share now
	out      []WayOut
}

// WaysOut reckons each; m may be nil.
func (c *Cluster) WaysOut(m *Model) []WayOut {
	e := &exits{c: c, m: m, out: []WayOut{}}
	if c.Replicas > 0 {
		e.replicas = &c.Spare
	}
	e.all()
	return e.out
}

// add appends a way with the factors that remain of the masters' and of the replicas' time.
func (e *exits) add(w WayOut, masters, replicas float64) {
	w.Possible = true
	w.Masters = e.c.Masters * masters
	w.Saves = 1 - masters
	if e.replicas != nil {
		share := *e.replicas * replicas
		w.Replicas = &share
	}
	e.out = append(e.out, w)
}

func (e *exits) not(id, title, why string) {
	e.out = append(e.out, WayOut{ID: id, Title: title, Note: why, Masters: e.c.Masters, Replicas: e.replicas})
}

func (e *exits) all() {
	how := fmt.Sprintf("%s, %s per second and node, %s each", e.c.Command, format.Digits(e.c.PerNode),
		format.Duration(e.c.PerCall))
	note := ""
	if !e.c.Seen {
		note = fmt.Sprintf("reckoned: %s, every %s", format.Count(e.c.Clients, "client"), format.Interval(e.c.Period))
	}
	e.add(WayOut{ID: "now", Title: "now", How: how, Note: note}, 1, 1)
	const upgrade = "upgrade the servers (Redis ≥ 7.0, Valkey)"
	if e.m == nil || e.m.Reference == "redis-5.0.6" || e.m.Reference == "redis-6.0.16" {
		e.upgrade("redis-7.0.15", "upgrade", upgrade, e.c.Command, "the commands clients send stay as they are")
	} else {
		e.not("upgrade", upgrade, fmt.Sprintf("nothing to gain: since 6.2 %s passes over the slots once", e.c.Command))
	}
	if e.c.Command != Shards {
		title := "upgrade to Valkey ≥ 8 and ask CLUSTER SLOTS"
		if e.m != nil && e.m.Reference == cachedSlots {
			title = "ask CLUSTER SLOTS"
		}
		e.upgrade(cachedSlots, "cached-slots", title, Slots, "Valkey ≥ 8 caches the reply of SLOTS; after a change "+
			"of the map the first call costs as before")
	}
	e.replicasOnly()
	e.add(WayOut{
		ID: "longer-period", Title: fmt.Sprintf("ask every %s, not every %s",
			format.Interval(e.c.Period*stretch), format.Interval(e.c.Period)), How: e.c.Habit.Longer,
		Note: "moved slots are found by MOVED meanwhile",
	}, 1.0/stretch, 1.0/stretch)
	e.seedsOnly()
	e.eventDriven()
}

// upgrade compares the laws of two versions on the map as it is: what else is in the time per call (other work on the
// host's CPU) stays in the ratio.
func (e *exits) upgrade(to, id, title string, c Command, note string) {
	if e.m == nil {
		e.not(id, title, "the cost of this server's version is not known")
		return
	}
	now, ok1 := e.m.on(e.m.Reference, e.c.Command, e.c.Size)
	then, ok2 := e.m.on(to, c, e.c.Size)
	if !ok1 || !ok2 {
		e.not(id, title, "not measured")
		return
	}
	factor := float64(then) / float64(now)
	if e.m.Reference == to && c == e.c.Command || factor >= 0.9 { // within the error of the model
		e.not(id, title, fmt.Sprintf("nothing to gain: %s costs as much on %s", c, to))
		return
	}
	e.add(WayOut{ID: id, Title: title, How: fmt.Sprintf("%s: %s a call in place of %s", c, format.Duration(then),
		format.Duration(now)), Note: note}, factor, factor)
}

func (e *exits) replicasOnly() {
	const id, title = "replicas-only", "ask replicas only"
	if e.c.Replicas == 0 {
		e.not(id, title, "there are no replicas")
		return
	}
	factor := 1.0 // who asks all nodes asks each replica as often as now
	if !e.c.Everyone {
		factor = float64(e.c.Size.Nodes) / float64(e.c.Replicas)
	}
	how := e.c.Habit.Replicas
	if how == "" {
		how = "where the library can be told which nodes to ask"
	}
	e.add(WayOut{ID: id, Title: title, How: how, Note: "a replica may know of a change a moment later"}, 0, factor)
}

func (e *exits) seedsOnly() {
	const id, title = "seeds-only", "ask the seeds only"
	if !e.c.Everyone {
		e.not(id, title, "each client asks one node already")
		return
	}
	if e.c.Size.Nodes <= seedsUsual {
		e.not(id, title, "there are no more nodes than seeds")
		return
	}
	factor := float64(seedsUsual) / float64(e.c.Size.Nodes)
	e.add(WayOut{ID: id, Title: title, How: e.c.Habit.Seeds, Note: fmt.Sprintf("with %d seeds; the seeds themselves "+
		"stay as now", seedsUsual)}, factor, factor)
}

// eventDriven costs nothing while nothing changes; then each client asks once.
func (e *exits) eventDriven() {
	burst := time.Duration(float64(e.c.Clients) * float64(e.c.PerCall))
	if !e.c.Everyone {
		burst /= time.Duration(max(1, e.c.Size.Nodes))
	}
	e.add(WayOut{
		ID: "event-driven", Title: "ask on events only", How: e.c.Habit.Trigger,
		Note: fmt.Sprintf("%s of each node per change of the map, when %s ask once; a master that hangs without a "+
			"word is found late", format.Duration(burst), format.Count(e.c.Clients, "client")),
	}, 0, 0)
}
