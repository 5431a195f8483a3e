package cost

import (
	"fmt"
	"time"

	"slowpath/internal/format"
)

// Option is one way to make map refreshes cheaper, and what share of the main threads they would still take.
type Option struct {
	ID       string   `json:"id"` // now, upgrade, cached-slots, replicas-only, longer-period, seeds-only, event-driven
	Title    string   `json:"title"`
	How      string   `json:"how"`
	Possible bool     `json:"possible"`
	Masters  float64  `json:"master_share"`  // mean share of a master's main thread
	Replicas *float64 `json:"replica_share"` // of a replica's; null if there are none
	Saves    float64  `json:"saves"`         // share of what the masters spend now, 0 to 1
	Note     string   `json:"note"`
}

const (
	typicalSeeds       = 3 // seeds that programs are configured with
	longerPeriodFactor = 5 // times longer
)

// optionList estimates each option for the present load.
type optionList struct {
	cluster      *Cluster
	model        *Model
	replicaShare *float64 // of a replica's main thread, now
	options      []Option
}

// Options estimates each option; m may be nil.
func (c *Cluster) Options(m *Model) []Option {
	list := &optionList{cluster: c, model: m, options: []Option{}}
	if c.Replicas > 0 {
		list.replicaShare = &c.ReplicaShare
	}
	list.addAll()
	return list.options
}

// add appends an option with the factors that remain of the masters' and of the replicas' time.
func (e *optionList) add(w Option, masters, replicas float64) {
	w.Possible = true
	w.Masters = e.cluster.MasterShare * masters
	w.Saves = 1 - masters
	if e.replicaShare != nil {
		share := *e.replicaShare * replicas
		w.Replicas = &share
	}
	e.options = append(e.options, w)
}

func (e *optionList) notPossible(id, title, why string) {
	e.options = append(e.options, Option{
		ID: id, Title: title, Note: why, Masters: e.cluster.MasterShare,
		Replicas: e.replicaShare,
	})
}

func (e *optionList) addAll() {
	how := fmt.Sprintf("%s, %s per second and node, %s each", e.cluster.Command, format.Digits(e.cluster.PerNode),
		format.Duration(e.cluster.PerCall))
	note := ""
	if !e.cluster.Counted {
		note = fmt.Sprintf("estimated: %s, every %s", format.Count(e.cluster.Clients, "client"),
			format.Interval(e.cluster.Period))
	}
	e.add(Option{ID: "now", Title: "now", How: how, Note: note}, 1, 1)
	const upgrade = "upgrade the servers (Redis ≥ 7.0, Valkey)"
	if e.model == nil || e.model.Reference == "redis-5.0.6" || e.model.Reference == "redis-6.0.16" {
		e.addUpgrade("redis-7.0.15", "upgrade", upgrade, e.cluster.Command, "clients send the same commands as now")
	} else {
		e.notPossible("upgrade", upgrade, fmt.Sprintf("no gain: since 6.2 %s passes over the slots once",
			e.cluster.Command))
	}
	if e.cluster.Command != Shards {
		title := "upgrade to Valkey ≥ 8 and ask CLUSTER SLOTS"
		if e.model != nil && e.model.Reference == cachedSlotsVersion {
			title = "ask CLUSTER SLOTS"
		}
		e.addUpgrade(cachedSlotsVersion, "cached-slots", title, Slots, "Valkey ≥ 8 caches the reply of SLOTS; after "+
			"a change "+
			"of the map the first call costs as before")
	}
	e.addReplicasOnly()
	e.add(Option{
		ID: "longer-period", Title: fmt.Sprintf("ask every %s, not every %s",
			format.Interval(e.cluster.Period*longerPeriodFactor), format.Interval(e.cluster.Period)),
		How:  e.cluster.Policy.LongerFor(e.cluster.Period * longerPeriodFactor),
		Note: "until then clients learn of moved slots by MOVED",
	}, 1.0/longerPeriodFactor, 1.0/longerPeriodFactor)
	e.addSeedsOnly()
	e.addEventDriven()
}

// addUpgrade compares the laws of two versions on the present map. What else is in the time per call (other work on
// the host's CPU) scales with it.
func (e *optionList) addUpgrade(to, id, title string, c Command, note string) {
	if e.model == nil {
		e.notPossible(id, title, "the cost of this server's version is not known")
		return
	}
	now, ok1 := e.model.on(e.model.Reference, e.cluster.Command, e.cluster.Size)
	then, ok2 := e.model.on(to, c, e.cluster.Size)
	if !ok1 || !ok2 {
		e.notPossible(id, title, "not measured")
		return
	}
	factor := float64(then) / float64(now)
	if e.model.Reference == to && c == e.cluster.Command || factor >= 0.9 { // within the error of the model
		e.notPossible(id, title, fmt.Sprintf("no gain: %s costs as much on %s", c, to))
		return
	}
	e.add(Option{ID: id, Title: title, How: fmt.Sprintf("%s: %s per call instead of %s", c, format.Duration(then),
		format.Duration(now)), Note: note}, factor, factor)
}

func (e *optionList) addReplicasOnly() {
	const id, title = "replicas-only", "ask replicas only"
	if e.cluster.Replicas == 0 {
		e.notPossible(id, title, "there are no replicas")
		return
	}
	factor := 1.0 // a client that asks all nodes asks each replica as often as now
	if !e.cluster.AskAll {
		factor = float64(e.cluster.Size.Nodes) / float64(e.cluster.Replicas)
	}
	how := e.cluster.Policy.Replicas
	if how == "" {
		how = "if the library can select the nodes to ask"
	}
	e.add(Option{ID: id, Title: title, How: how, Note: "a replica may learn of a change slightly later"}, 0, factor)
}

func (e *optionList) addSeedsOnly() {
	const id, title = "seeds-only", "ask the seeds only"
	if !e.cluster.AskAll {
		e.notPossible(id, title, "each client asks one node already")
		return
	}
	if e.cluster.Size.Nodes <= typicalSeeds {
		e.notPossible(id, title, "there are no more nodes than seeds")
		return
	}
	factor := float64(typicalSeeds) / float64(e.cluster.Size.Nodes)
	e.add(Option{
		ID: id, Title: title, How: e.cluster.Policy.Seeds,
		Note: fmt.Sprintf("with %d seeds; the seeds themselves "+
			"stay as now", typicalSeeds),
	}, factor, factor)
}

// addEventDriven adds refreshes on events only: they cost nothing while nothing changes; then each client asks once.
func (e *optionList) addEventDriven() {
	burst := time.Duration(float64(e.cluster.Clients) * float64(e.cluster.PerCall))
	if !e.cluster.AskAll {
		burst /= time.Duration(max(1, e.cluster.Size.Nodes))
	}
	e.add(Option{
		ID: "event-driven", Title: "ask on events only", How: e.cluster.Policy.Trigger,
		Note: fmt.Sprintf("%s of each node per change of the map, when %s ask once; a master that hangs without an "+
			"error is noticed late", format.Duration(burst), format.Count(e.cluster.Clients, "client")),
	}, 0, 0)
}
