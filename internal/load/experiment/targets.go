package experiment

import (
	"context"
	"errors"
	"fmt"
)

// TargetsSchema is that of Targets.
const TargetsSchema = "slowpath.targets/v1"

// Targets is the same load on several targets in turn, the document slowpath.targets/v1 (docs/json.md).
type Targets struct {
	Schema      string `json:"schema"`
	Setup              // its target is the first one, with which the others are compared
	Rounds      int    `json:"rounds"` // as asked for, without the first, which does not count
	Interrupted bool   `json:"interrupted"`
	// Open loop: the rate is what was asked for, and latencies are compared.
	Open    bool       `json:"open"`
	Targets []Compared `json:"targets"`
	Summary string     `json:"summary"`
	// Caveat says at which targets the generator or its host was the limit; empty: at none.
	Caveat string   `json:"caveat,omitempty"`
	Notes  []string `json:"notes"`
}

// Compared is a target and its loads. Estimates are medians over the rounds in which it was up; nil: there is none, or
// it was not seen.
type Compared struct {
	Name              string         `json:"name"` // A, B, …
	Target            ComparedTarget `json:"target"`
	RequestsPerSecond *Estimate      `json:"requests_per_second"`
	P50Ns             *Estimate      `json:"p50_ns"`
	P99Ns             *Estimate      `json:"p99_ns"`
	// CPU seconds per million calls: of the generator, of all servers, and of the proxy in front of them.
	GeneratorCPU *Estimate `json:"generator_cpu_seconds_per_million_requests"`
	ServerCPU    *Estimate `json:"server_cpu_seconds_per_million_requests"`
	ProxyCPU     *Estimate `json:"proxy_cpu_seconds_per_million_requests"`
	ErrorShare   float64   `json:"error_share"` // median
	// LimitedBy is what limited most of its rounds, LimitedRounds of them; Sentence is that of one of these.
	LimitedBy        string `json:"limited_by"`
	LimitedRounds    int    `json:"limited_rounds"`
	Sentence         string `json:"sentence"`
	GeneratorLimited bool   `json:"generator_limited"` // in at least half of its rounds
	// Change is against the first target, by pairs of the same round: -0.2 is a fifth less. nil for the first, and
	// without a round that both have.
	Change *Changes `json:"change"`
	// PerNode is the calls per second of one node by those of one of the first target: 1 is a cluster that loses
	// nothing by being one. nil where a number of nodes is not known, and of an open loop.
	PerNode  *Estimate `json:"per_node"`
	Runs     []Round   `json:"runs"`
	Failures []Failure `json:"failures"`
}

// ComparedTarget is a target as it identifies itself.
type ComparedTarget struct {
	Address string `json:"address"`
	Kind    string `json:"kind"`    // Standalone, Cluster, Proxy, Unknown
	Server  string `json:"server"`  // "redis 7.0.15"; empty where it does not say
	Process string `json:"process"` // name of the process of a proxy on this host
	Nodes   int    `json:"nodes"`   // masters that share the keys; 0: not known
	// Identity is equal for two addresses of the same server or cluster; empty: not known.
	Identity string `json:"-"`
}

// Kinds of targets.
const (
	Standalone = "standalone"
	Cluster    = "cluster"
	Proxy      = "proxy"
	Unknown    = "unknown" // it answers no INFO
)

// Label is the kind in at most three words.
func (t ComparedTarget) Label() string {
	switch {
	case t.Kind == Cluster && t.Nodes > 0:
		return fmt.Sprintf("cluster of %d", t.Nodes)
	case t.Kind == Proxy && t.Process != "":
		return t.Process
	}
	return t.Kind
}

// Changes are ratios to the first target, less 1.
type Changes struct {
	RequestsPerSecond Estimate `json:"requests_per_second"`
	P50Ns             Estimate `json:"p50_ns"`
	P99Ns             Estimate `json:"p99_ns"`
}

// Round is the load of a target in a round, from 1.
type Round struct {
	Round int `json:"round"`
	Run
}

// Failure is a round in which a target had no load that counts.
type Failure struct {
	Round int    `json:"round"`
	Error string `json:"error"`
}

// TargetsOptions say what is compared.
type TargetsOptions struct {
	Setup   Setup
	Targets int // at least 2
	Rounds  int // at least 1
	Open    bool
	// Load makes one load on a target, by its number from 0. Its error is one of this target in this round.
	Load func(ctx context.Context, target int) (Run, error)
	// Target is what is known of a target after its loads.
	Target func(target int) ComparedTarget
	// Progress, if set, is called before each load; round 0 does not count.
	Progress func(round, target int)
}

// MakeTargets loads the targets in rounds: A B C, C B A, … A machine that gets slower or faster meanwhile changes all
// of them alike, and each pair of loads of a round is close in time. The first round does not count. A target that
// fails has no load in that round. When ctx ends, the loads so far are the result; without any it is an error.
func MakeTargets(ctx context.Context, o TargetsOptions) (*Targets, error) {
	s := &Targets{
		Schema: TargetsSchema, Setup: o.Setup, Rounds: o.Rounds, Open: o.Open, Notes: []string{},
		Targets: make([]Compared, o.Targets),
	}
	for i := range s.Targets {
		s.Targets[i].Name, s.Targets[i].Runs, s.Targets[i].Failures = TargetName(i), []Round{}, []Failure{}
	}
	var failed error
	order := 0
	for n := 0; n < (o.Rounds+1)*o.Targets && !s.Interrupted; n++ {
		round, i := n/o.Targets, n%o.Targets
		if round%2 == 1 {
			i = o.Targets - 1 - i
		}
		if o.Progress != nil {
			o.Progress(round, i)
		}
		r, err := o.Load(ctx, i)
		t := &s.Targets[i]
		switch {
		case ctx.Err() != nil:
			s.Interrupted = true
		case round == 0:
		case err != nil:
			failed = err
			t.Failures = append(t.Failures, Failure{round, err.Error()})
		default:
			order++
			r.Order = order
			t.Runs = append(t.Runs, Round{round, r})
		}
	}
	if order == 0 {
		return nil, errors.Join(errors.New("no load was finished"), failed, ctx.Err())
	}
	for i := range s.Targets {
		s.Targets[i].Target = o.Target(i)
	}
	s.Setup.Target = s.Targets[0].Target
	s.conclude()
	return s, nil
}

// TargetName is the name of a target by its number: A, B, …
func TargetName(i int) string { return string(rune('A' + i)) }

// MostTargets is how many have a name.
const MostTargets = 26
