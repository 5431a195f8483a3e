package compare

// Schema names the JSON contract of a Comparison (docs/json.md).
const Schema = "slowpath.compare/v1"

// What a comparison says.
const (
	Better  = "better"
	Worse   = "worse"
	Same    = "same" // no difference was shown
	Unknown = "unknown"
)

// Comparison is what differs between two recordings.
type Comparison struct {
	Schema  string `json:"schema"`
	Verdict string `json:"verdict"`
	Summary string `json:"summary"`
	Before  Watch  `json:"before"`
	After   Watch  `json:"after"`
	// Population is whose calls are compared, those that both have: users, load or probe; empty: none.
	Population string `json:"population"`
	// LostBefore and LostAfter are what callers lost by slow calls and otherwise, in nanoseconds per call.
	LostBefore float64   `json:"lost_before_ns"`
	LostAfter  float64   `json:"lost_after_ns"`
	Metrics    []Metric  `json:"metrics"`
	Findings   []Finding `json:"findings"`
	// States are the time of slow calls by state, per 1 000 calls, largest change first.
	States   []State      `json:"states"`
	Callers  []Caller     `json:"callers"`
	Versions []Difference `json:"versions"`
	Settings []Difference `json:"settings"`
}

// Watch is one of the two.
type Watch struct {
	Name    string   `json:"name"` // of its file; empty where none was kept
	Target  string   `json:"target"`
	Start   string   `json:"start"` // RFC 3339
	Seconds float64  `json:"seconds"`
	Verdict string   `json:"verdict"`
	Summary string   `json:"summary"`
	Sources []string `json:"sources"` // those that took part
}

// Metric is a number of the calls of the population. Times are nanoseconds.
type Metric struct {
	Name   string  `json:"name"` // calls_per_second, p50_ns, p99_ns, slow_share, stalls_per_minute, failed_share
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// Change is after by before, less 1; it lies from Low to High at 95 % for all metrics together. Null: not known.
	Change *float64 `json:"change"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
	// P is the probability of such a difference if nothing had changed; null where it is not known.
	P       *float64 `json:"p"`
	Verdict string   `json:"verdict"`
}

// Finding is a cause, and which of the two names it.
type Finding struct {
	Cause  string  `json:"cause"`
	Title  string  `json:"title"`
	Before float64 `json:"before"` // share of the lost time; 0: not found
	After  float64 `json:"after"`
	Change string  `json:"change"` // gone, new, or stays
}

// State is the time of slow calls in one state, in nanoseconds per 1 000 calls.
type State struct {
	Actor  string  `json:"actor"`
	State  string  `json:"state"`
	Before float64 `json:"before_ns"`
	After  float64 `json:"after_ns"`
}

// Caller is a program, or a host, that calls.
type Caller struct {
	Name   string  `json:"name"`
	Before float64 `json:"before"` // calls per second
	After  float64 `json:"after"`
}

// Difference is something that is not the same on both sides; empty: not there.
type Difference struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}
