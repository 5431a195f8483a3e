package matrix

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/load/experiment"
)

// PoolSchema names the JSON of a PoolSweep (docs/json.md).
const PoolSchema = "slowpath.pool-sweep/v1"

// How callers use connections.
const (
	Borrow    = "borrow"     // each call borrows a connection of the pool, and gives it back
	PerThread = "per-thread" // each caller keeps a connection of its own
)

// PoolModes lists them in the order of a table.
func PoolModes() []string { return []string{Borrow, PerThread} }

// PoolSweep is real clients on one server, with pools of several sizes.
type PoolSweep struct {
	Schema      string       `json:"schema"`
	Version     string       `json:"version"` // of this program
	Start       time.Time    `json:"start"`
	CPUs        int          `json:"cpus"` // of the machine, on which client and server run together
	Server      string       `json:"server"`
	Topology    string       `json:"topology"`
	Settings    PoolSettings `json:"settings"`
	Interrupted bool         `json:"interrupted"` // rounds are missing
	Rows        []PoolRow    `json:"rows"`
	Best        []PoolBest   `json:"best"`
	Notes       []string     `json:"notes"`
}

// PoolSettings is how each row is measured.
type PoolSettings struct {
	Workers  int           `json:"workers"` // callers that borrow; PerThread has as many as connections
	Keys     int           `json:"keys"`
	Warmup   time.Duration `json:"warmup_ns"`   // calls of this time are not counted
	Duration time.Duration `json:"duration_ns"` // how long calls of a round are counted
	Rounds   int           `json:"rounds"`      // as asked for
	Masters  int           `json:"masters"`     // of a cluster
	Replicas int           `json:"replicas"`    // of each
}

// PoolRow is a client with a pool of one size. Estimates are medians over its rounds; nil: it has none.
type PoolRow struct {
	Client  string `json:"client"`
	Library string `json:"library,omitempty"` // with its version, as the program says
	Mode    string `json:"mode"`              // Borrow or PerThread
	Pool    int    `json:"pool"`              // connections at most; of a cluster, to each node
	Callers int    `json:"callers"`
	// Connections that the servers had of the client in the midst of the counted time, the median.
	Connections       int                  `json:"connections"`
	RequestsPerSecond *experiment.Estimate `json:"requests_per_second"` // those that succeeded
	MeanNs            *experiment.Estimate `json:"mean_ns"`             // as the caller sees it, failed calls too
	P50Ns             *experiment.Estimate `json:"p50_ns"`
	P99Ns             *experiment.Estimate `json:"p99_ns"`
	Calls             int64                `json:"calls"` // of all rounds
	Errors            int64                `json:"errors"`
	ErrorKinds        map[string]int64     `json:"errors_by_kind,omitempty"` // as in slowpath.client/v1
	LastError         string               `json:"last_error,omitempty"`
	// LimitedBy is what limited most of its rounds, LimitedRounds of them, as in slowpath.matrix/v1.
	LimitedBy     string               `json:"limited_by,omitempty"`
	LimitedRounds int                  `json:"limited_rounds"`
	Runs          []PoolRun            `json:"runs"`
	Failures      []experiment.Failure `json:"failures"`
	Empty         string               `json:"empty,omitempty"` // why there are no figures
}

// PoolRun is the load of a row in a round, from 1.
type PoolRun struct {
	Round             int     `json:"round"`
	Calls             int64   `json:"calls"`
	Errors            int64   `json:"errors"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	MeanNs            int64   `json:"mean_ns"`
	P50Ns             int64   `json:"p50_ns"`
	P99Ns             int64   `json:"p99_ns"`
	Connections       int     `json:"connections"`
	LimitedBy         string  `json:"limited_by,omitempty"`
}

// PoolBest says which of several rows of a client is shown to be the best.
type PoolBest struct {
	Client   string `json:"client"`
	Mode     string `json:"mode"` // of the best row; empty: none is shown to be better
	Pool     int    `json:"pool"` // of the best row; 0: none is shown to be better
	Sentence string `json:"sentence"`
	// Against compares the row with the most calls with the others.
	Against []PoolTimes `json:"against"`
}

// PoolTimes is the calls per second of a row by those of this one, by pairs of the same round: 1.3 is 30 % more.
type PoolTimes struct {
	Mode  string               `json:"mode"`
	Pool  int                  `json:"pool"`
	Times *experiment.Estimate `json:"times"` // nil: they have no round in common
}

// PoolPlan is what a sweep is to hold.
type PoolPlan struct {
	Clients, Modes []string
	Sizes          []int // in ascending order
}

// NewPoolPlan is a plan of names between commas. Without names it has both uses, and the clients that have a pool.
func NewPoolPlan(programs, uses string, sizes []int) (p PoolPlan, err error) {
	p.Sizes = sizes
	if p.Modes, err = chosen("use", uses, PoolModes(), among("use", PoolModes())); err != nil {
		return p, err
	}
	var pooled []clients.Name
	for _, c := range clients.Catalogue() {
		if c.Pool {
			pooled = append(pooled, c.Name)
		}
	}
	p.Clients, err = chosen("clients", programs, pooled, clients.CheckName)
	return p, err
}

// NewPoolSweep is a sweep without figures. Errors match ErrSettings.
func NewPoolSweep(version string, p PoolPlan, s PoolSettings, server, topology string) (*PoolSweep, error) {
	return &PoolSweep{
		Schema: PoolSchema, Version: version, Start: time.Now().UTC(), CPUs: runtime.NumCPU(), Settings: s,
		Server: server, Topology: topology, Rows: p.Rows(s),
	}, s.Check(p)
}

// FullPools are the usual settings of a sweep. Six rounds are the fewest that have an interval.
func FullPools() PoolSettings {
	full := Full()
	return PoolSettings{
		Keys: full.Keys, Warmup: 2 * time.Second, Duration: 2 * time.Second, Rounds: 6,
		Masters: full.Masters, Replicas: full.Replicas,
	}
}

// Check finds what no row could do. Errors match ErrSettings.
func (s PoolSettings) Check(p PoolPlan) error {
	switch {
	case len(p.Sizes) == 0 || p.Sizes[len(p.Sizes)-1] > mostWorkers:
		return fmt.Errorf("%w: a pool of more than %d connections; give at most that", ErrSettings, mostWorkers)
	case s.Rounds < 1:
		return fmt.Errorf("%w: %d rounds; give 1 or more", ErrSettings, s.Rounds)
	}
	return s.matrix().Check()
}

// matrix is the settings as those of a matrix, in which doctor is not asked.
func (s PoolSettings) matrix() Settings {
	return Settings{
		Workers: s.Workers, Keys: s.Keys, Warmup: s.Warmup, Duration: s.Duration, Masters: s.Masters,
		Replicas: s.Replicas,
	}
}

// Rows lists the rows of the plan without figures, those that cannot have any with the reason.
func (p PoolPlan) Rows(s PoolSettings) (out []PoolRow) {
	for _, name := range p.Clients {
		for _, mode := range p.Modes {
			why := cannotPool(name, mode)
			for _, size := range p.Sizes {
				r := PoolRow{Client: name, Mode: mode, Pool: size, Callers: s.Workers, Runs: []PoolRun{}, Empty: why}
				r.Failures = []experiment.Failure{}
				if mode == PerThread {
					r.Callers = size
				}
				if out = append(out, r); why != "" {
					break // once is enough
				}
			}
		}
	}
	return out
}

// cannotPool is why a client has no such rows; empty: it has, or is somebody's own program, which says itself.
func cannotPool(name, mode string) string {
	c, err := lookup(clients.Name(name))
	switch {
	case err != nil:
		return err.Error()
	case mode == Borrow && !c.Pool:
		return "its callers share connections: it has no pool whose size could be set"
	case mode == PerThread && !c.Own:
		return "a caller cannot keep a connection of its own"
	}
	return ""
}

// ExpectedPools is about how long the rows take on a machine that has all programs in its caches.
func ExpectedPools(rows []PoolRow, s PoolSettings) time.Duration {
	n := 0
	for _, r := range rows {
		if r.Empty == "" {
			n++
		}
	}
	return time.Duration(n*s.Rounds) * (s.Warmup + s.Duration + startsClient)
}

// startsClient is for starting and ending a client with its connections.
const startsClient = time.Second

// Measured says whether it has a round.
func (r PoolRow) Measured() bool { return len(r.Runs) > 0 }

// Measured says whether a row has a round.
func (s *PoolSweep) Measured() bool { return slices.ContainsFunc(s.Rows, PoolRow.Measured) }

// String is "jedis, borrow, pool of 100".
func (r PoolRow) String() string {
	return fmt.Sprintf("%s, %s, pool of %d", r.Client, r.Mode, r.Pool)
}

// waits is how long a call waits at least for a connection, in the mean: by Little's law the callers that can have none
// at a time are waiting, and all callers are in a call all the time. 0: there is one for each, or connections are not
// known.
func waits(mean time.Duration, callers, connections int) time.Duration {
	if connections <= 0 || connections >= callers {
		return 0
	}
	return time.Duration(float64(mean) * float64(callers-connections) / float64(callers))
}
