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

// Report is what a survey shows. Every list is never nil.
type Report struct {
	Schema        string         `json:"schema"`
	Version       string         `json:"version"`
	Target        Target         `json:"target"`
	Window        Window         `json:"window"`
	Verdict       string         `json:"verdict"`
	Findings      []Finding      `json:"findings"`
	Map           MapSummary     `json:"map"`
	Shards        []Shard        `json:"shards"`
	Views         []View         `json:"views"`
	Disagreements []Disagreement `json:"disagreements"`
	Uncovered     []string       `json:"uncovered"` // ranges of slots, "0-99"
	Moving        []Moving       `json:"moving"`
	Refreshers    []Refresher    `json:"refreshers"`
	Libraries     []Library      `json:"libraries"`
	Refreshes     Refreshes      `json:"refreshes"`
	Model         *cost.Model    `json:"model,omitempty"` // absent where nothing could be measured
	WhatIf        []cost.WhatIf  `json:"what_if"`
	WaysOut       []cost.WayOut  `json:"ways_out"`
	BlindSpots    []BlindSpot    `json:"blind_spots"`
	Cost          OwnCost        `json:"cost"`
}

// Target is whom the command line named.
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

// MapSummary is the map that most nodes hold (of equal ones the target's).
type MapSummary struct {
	Size         cost.Size `json:"size"`
	Replicas     int       `json:"replicas"`
	SlotsCovered int       `json:"slots_covered"`
	RangesMin    int       `json:"ranges_min"` // of a master with slots
	RangesMedian int       `json:"ranges_median"`
	RangesMax    int       `json:"ranges_max"`
	CurrentEpoch uint64    `json:"current_epoch"`
	Source       string    `json:"source"` // the command that gave it
	// nodes that answered with just this assignment of slots and these members
	HeldBy          int   `json:"held_by"`
	Answered        int   `json:"answered"`        // nodes that answered
	LinksDown       int   `json:"links_down"`      // links of the cluster bus that nodes call disconnected
	LinkBufferBytes int64 `json:"link_buffer_max"` // the most that waits on one link, bytes (since Redis 7.0)
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
	State    string   `json:"state"`  // ok, suspected, failed, unreachable, loading, syncing, link-down
	Why      string   `json:"why,omitempty"`
	LagBytes *int64   `json:"lag_bytes,omitempty"` // of a replica, behind its master
	LagNs    *int64   `json:"lag_ns,omitempty"`    // since it last heard of its master
	Flags    []string `json:"flags"`
}

// View is one node's own.
type View struct {
	Address      string `json:"address"`
	ID           string `json:"id"`
	Why          string `json:"why,omitempty"` // why there is none
	State        string `json:"state"`         // cluster_state
	KnownNodes   int    `json:"known_nodes"`
	CurrentEpoch uint64 `json:"current_epoch"`
	SlotsDiffer  int    `json:"slots_differ"` // from the map that most hold
}

// Disagreement is what some nodes hold and others do not.
type Disagreement struct {
	Kind string   `json:"kind"` // slots, member, role, health, epoch
	What string   `json:"what"`
	By   []string `json:"by"` // addresses of the nodes that differ from the most
}

// Moving is slots that are open: on their way from one node to another.
type Moving struct {
	Slots  string `json:"slots"`
	Count  int    `json:"count"`
	From   string `json:"from"`
	To     string `json:"to"`
	Source bool   `json:"source"` // the source calls them migrating
	Taker  bool   `json:"taker"`  // the other end calls them importing
}

// BlindSpot is what could not be seen.
type BlindSpot struct {
	What   string `json:"what"`
	Why    string `json:"why"`
	Enable string `json:"enable"`
}

// OwnCost is what the survey took of the servers.
type OwnCost struct {
	Commands map[string]int `json:"commands"` // sent, of all nodes together
	PerNode  int            `json:"commands_per_node"`
	// of all nodes together, by their commandstats; of a command that they do not count, 0
	ServerTimeNs int64 `json:"server_time_ns"`
	MaxNodeNs    int64 `json:"server_time_max_ns"`
}
