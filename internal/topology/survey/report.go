package survey

import (
	"time"

	"slowpath/internal/topology/cost"
)

// Schema names the JSON document.
const Schema = "slowpath.topology/v1"

// The verdicts.
const (
	Healthy  = "healthy"
	Findings = "findings"
)

// Report is the result of a survey. No list is nil.
type Report struct {
	Schema        string            `json:"schema"`
	Version       string            `json:"version"`
	Target        Target            `json:"target"`
	Window        Window            `json:"window"`
	Verdict       string            `json:"verdict"`
	Findings      []Finding         `json:"findings"`
	Map           MapSummary        `json:"map"`
	Shards        []Shard           `json:"shards"`
	Views         []View            `json:"views"`
	Disagreements []Disagreement    `json:"disagreements"`
	Uncovered     []string          `json:"uncovered"` // ranges of slots, "0-99"
	Moving        []Moving          `json:"moving"`
	Refreshers    []Refresher       `json:"refreshers"`
	Libraries     []Library         `json:"libraries"`
	Refreshes     Refreshes         `json:"refreshes"`
	Model         *cost.Model       `json:"model,omitempty"` // absent where nothing could be measured
	Projections   []cost.Projection `json:"what_if"`
	Options       []cost.Option     `json:"ways_out"`
	BlindSpots    []BlindSpot       `json:"blind_spots"`
	Cost          OwnCost           `json:"cost"`
}

// Target is the node of the command line.
type Target struct {
	Address string `json:"address"`
	Server  string `json:"server"`
}

// Window is when the survey was made, and for how long refreshes were counted.
type Window struct {
	Start   time.Time `json:"start"`
	Seconds float64   `json:"seconds"`
}

// Finding is something to act on.
type Finding struct {
	ID   string   `json:"id"` // stable, for scripts
	Text string   `json:"text"`
	Fix  []string `json:"fix"`
}

// MapSummary is the map that most nodes have (of equally common ones the target's).
type MapSummary struct {
	Size         cost.Size `json:"size"`
	Replicas     int       `json:"replicas"`
	SlotsCovered int       `json:"slots_covered"`
	RangesMin    int       `json:"ranges_min"` // of a master with slots
	RangesMedian int       `json:"ranges_median"`
	RangesMax    int       `json:"ranges_max"`
	CurrentEpoch uint64    `json:"current_epoch"`
	Source       string    `json:"source"` // the command that gave it
	// nodes that answered with exactly this assignment of slots and these members
	HeldBy          int   `json:"held_by"`
	Answered        int   `json:"answered"`        // nodes that answered
	LinksDown       int   `json:"links_down"`      // links of the cluster bus that are disconnected
	LinkBufferBytes int64 `json:"link_buffer_max"` // largest send buffer in use of a link, bytes (since Redis 7.0)
}

// Shard is a master with its replicas.
type Shard struct {
	Master   Member   `json:"master"`
	Replicas []Member `json:"replicas"`
	Slots    int      `json:"slots"`
	Ranges   []string `json:"ranges"` // the first of them
	RangesOf int      `json:"ranges_of"`
	Epoch    uint64   `json:"epoch"`
}

// Member is a node of a shard.
type Member struct {
	Address  string   `json:"address"`
	ID       string   `json:"id"`
	Server   string   `json:"server"` // empty where it did not answer
	State    string   `json:"state"`  // ok, suspected, failed, unreachable, loading, syncing, link-down, not-asked
	Why      string   `json:"why,omitempty"`
	LagBytes *int64   `json:"lag_bytes,omitempty"` // of a replica, behind its master
	LagNs    *int64   `json:"lag_ns,omitempty"`    // since the last byte from its master
	Flags    []string `json:"flags"`
}

// View is how one node sees the cluster.
type View struct {
	Address      string `json:"address"`
	ID           string `json:"id"`
	Why          string `json:"why,omitempty"` // why there is none
	State        string `json:"state"`         // cluster_state
	KnownNodes   int    `json:"known_nodes"`
	CurrentEpoch uint64 `json:"current_epoch"`
	SlotsDiffer  int    `json:"slots_differ"` // from the map that most nodes have
}

// Disagreement is a difference between the views of nodes.
type Disagreement struct {
	Kind string   `json:"kind"` // slots, member, role, health, epoch
	What string   `json:"what"`
	By   []string `json:"by"` // addresses of the nodes that differ from the majority
}

// Moving is a group of open slots: they are being moved from one node to another.
type Moving struct {
	Slots  string `json:"slots"`
	Count  int    `json:"count"`
	From   string `json:"from"`
	To     string `json:"to"`
	Source bool   `json:"source"` // the source shows them as migrating
	Taker  bool   `json:"taker"`  // the receiver shows them as importing
}

// BlindSpot is what could not be seen.
type BlindSpot struct {
	What   string `json:"what"`
	Why    string `json:"why"`
	Enable string `json:"enable"`
}

// OwnCost is what the survey cost the servers.
type OwnCost struct {
	Commands map[string]int `json:"commands"` // sent, of all nodes together
	PerNode  int            `json:"commands_per_node"`
	// of all nodes together, by their commandstats; 0 for a command that they do not count
	ServerTimeNs int64 `json:"server_time_ns"`
	MaxNodeNs    int64 `json:"server_time_max_ns"`
}
