package web

import (
	"net/http"
	"time"
)

// HealthSchema names the document of /healthz.
const HealthSchema = "slowpath.health/v1"

// How an agent is, as Health.Status.
const (
	Ok       = "ok"       // all that was asked for is watched
	Degraded = "degraded" // something is not, or not fully: Problems say what
	Failed   = "failed"   // nothing is watched
)

// Health is how the agent is: what it watches, what it does not see, and what it costs.
type Health struct {
	Schema  string    `json:"schema"`
	Version string    `json:"version"`
	Status  string    `json:"status"`
	Since   time.Time `json:"since"`
	// Problems are sentences for people, each with what to do; empty where Status is ok.
	Problems []string  `json:"problems"`
	Targets  []Watched `json:"targets"`
	// Unseen is what the watch cannot see, as in slowpath.diagnosis/v1.
	Unseen []BlindSpot `json:"unseen"`
	Cost   Cost        `json:"cost"`
	Ring   Kept        `json:"ring"`
	Disk   Disk        `json:"disk"`
}

// Watched is a server that is watched, or should be.
type Watched struct {
	Target string `json:"target"` // as given, or as found
	Found  bool   `json:"found"`  // on this host, not named
	State  string `json:"state"`  // watched, unreachable, starting
	Why    string `json:"why,omitempty"`
}

// BlindSpot is what is not seen, why, and how to see it.
type BlindSpot struct {
	What   string `json:"what"`
	Why    string `json:"why"`
	Enable string `json:"enable,omitempty"`
}

// Cost is what the agent takes of this host: its process and that of its page. Shares are of one CPU core.
type Cost struct {
	CPUShare       float64 `json:"cpu_share"`             // over the last minute
	CPUBudget      float64 `json:"cpu_budget"`            // 0: none
	HooksShare     float64 `json:"hooks_share,omitempty"` // of the kernel programs; 0: not known
	RSSBytes       int64   `json:"rss_bytes"`             // now
	RSSBudgetBytes int64   `json:"rss_budget_bytes"`      // 0: none
	JudgingNs      int64   `json:"judging_ns"`            // CPU time of judgements since it began; not in CPUShare
	Reduced        string  `json:"reduced,omitempty"`     // what the agent does less of, to keep its budget
}

// Kept is what the ring has in full detail.
type Kept struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Bytes int64     `json:"bytes"`
	Lost  string    `json:"lost,omitempty"` // what it could not keep
}

// Disk is what the agent keeps on disk.
type Disk struct {
	Bytes       int64 `json:"bytes"`
	BudgetBytes int64 `json:"budget_bytes"`
}

// healthz answers whether the agent lives. Who is not logged in gets the status alone.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	h := s.health()
	code := http.StatusOK
	if h.Status == Failed {
		code = http.StatusServiceUnavailable
	}
	if _, known := s.access.known(r); !known {
		sendJSON(w, code, struct {
			Schema string `json:"schema"`
			Status string `json:"status"`
		}{h.Schema, h.Status})
		return
	}
	sendJSON(w, code, h)
}

// health is Options.Health with lists that are never null, and bounded.
func (s *Server) health() Health {
	h := s.o.Health()
	h.Schema, h.Version = HealthSchema, s.o.Version
	h.Problems = listed(h.Problems, maxListed)
	h.Targets = listed(h.Targets, maxListed)
	h.Unseen = listed(h.Unseen, maxListed)
	return h
}

// maxListed bounds lists of names that others chose.
const maxListed = 1000

// listed is a list that is never null and has n items at most.
func listed[T any](all []T, n int) []T {
	if all == nil {
		return []T{}
	}
	return all[:min(len(all), n)]
}
