// Package experiment makes several loads and draws conclusions: a sweep over a setting with its knee, the highest rate
// that holds a limit, repeats, and what differs between two sets of them. The caller passes a function that makes a
// load.
package experiment

import "time"

// Run is the result of one load of an experiment.
type Run struct {
	Order             int       `json:"order"` // among the loads of the experiment, from 1
	Start             time.Time `json:"start"`
	Seconds           float64   `json:"seconds"`
	Requests          int64     `json:"requests"`
	RequestsPerSecond float64   `json:"requests_per_second"`
	Latency           Latency   `json:"latency"` // from the intended time
	Service           Latency   `json:"service"` // from the send
	ErrorShare        float64   `json:"error_share"`
	// CPUSecondsPerMillion is what a million requests cost the generator.
	CPUSecondsPerMillion float64 `json:"cpu_seconds_per_million_requests"`
	// What a million requests cost the processes of the servers, and the proxy in front of them; nil: not all of them
	// were seen, or there is none.
	ServerCPUSecondsPerMillion *float64 `json:"server_cpu_seconds_per_million_requests,omitempty"`
	ProxyCPUSecondsPerMillion  *float64 `json:"proxy_cpu_seconds_per_million_requests,omitempty"`
	// Of an open loop: calls that were due and never sent, and the generator's own delay, how much later than intended
	// it sent calls that had a connection with room.
	Unsent    int64 `json:"unsent"`
	LateP50Ns int64 `json:"late_p50_ns"`
	LateP99Ns int64 `json:"late_p99_ns"`
	LateMaxNs int64 `json:"late_max_ns"`
	// LimitedBy is the id of what limited the load, empty where it is not known; Sentence says it in words.
	LimitedBy string `json:"limited_by,omitempty"`
	Sentence  string `json:"sentence,omitempty"`
	// GeneratorLimited: the load says more about the generator than about the server.
	GeneratorLimited bool `json:"generator_limited"`
}

// Latency is quantiles of the latencies of a load, in nanoseconds.
type Latency struct {
	MeanNs  int64 `json:"mean_ns"`
	P50Ns   int64 `json:"p50_ns"`
	P90Ns   int64 `json:"p90_ns"`
	P99Ns   int64 `json:"p99_ns"`
	P999Ns  int64 `json:"p999_ns"`
	P9999Ns int64 `json:"p9999_ns"`
	MaxNs   int64 `json:"max_ns"`
}

// Setup is what all loads of an experiment have in common.
type Setup struct {
	Version  string `json:"version"`  // of the program
	Target   any    `json:"target"`   // as in the document of a load
	Settings any    `json:"settings"` // of the first load, before what the experiment changes
	// DurationNs is how long each load is measured, after a warm-up of WarmUpNs.
	DurationNs int64 `json:"duration_ns"`
	WarmUpNs   int64 `json:"warm_up_ns"`
}
