package agent

import (
	"maps"
	"slices"
	"time"

	"slowpath/internal/agent/ring"
	"slowpath/internal/recording"
)

// Health is how the agent is.
type Health struct {
	Since    time.Time
	Watching bool     // at least one server is watched
	Problems []string // sentences; empty: all that was asked for is watched
	Servers  []Server
	Unseen   []recording.BlindSpot
	Missed   []recording.Unseen // of what is watched
	Cost     Cost
	Ring     ring.Status
	// DiskBytes is what is kept on disk, DiskBudget what may be.
	DiskBytes, DiskBudget int64
}

// Health says how the agent is. It is cheap.
func (a *Agent) Health() Health {
	a.mu.Lock()
	problems := slices.Sorted(maps.Values(a.problems))
	a.mu.Unlock()
	h := Health{
		Since: a.since, Watching: a.watchedFrom.Load() > 0, Servers: a.servers.all(), Unseen: a.view.BlindSpots(),
		Missed: a.view.Unseen(), Cost: a.budget.Cost(), Ring: a.ring.Status(), DiskBudget: a.settings.Load().disk(),
	}
	_, kept := a.store.Usage()
	h.DiskBytes = h.Ring.Bytes + kept + a.dir.folder.Size(historyName)
	if h.Ring.Trouble != "" {
		problems = append(problems, h.Ring.Trouble)
	}
	for _, s := range h.Servers {
		if !s.Watched && s.Why != "" && h.Watching {
			problems = append(problems, s.Address+" is not watched: "+s.Why)
		}
	}
	if h.Cost.Sampled {
		problems = append(problems, "to keep the budget: "+samplesSay)
	}
	if h.Cost.Over != "" {
		problems = append(problems, "over budget: "+h.Cost.Over)
	}
	h.Problems = problems
	return h
}
