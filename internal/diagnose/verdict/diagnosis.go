package verdict

import (
	"cmp"
	"time"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/changes"
	"slowpath/internal/recording"
)

// Schema names the JSON contract of a Diagnosis (docs/json.md).
const Schema = "slowpath.diagnosis/v1"

// Verdicts.
const (
	Healthy      = "healthy"
	Findings     = "findings"
	Inconclusive = "inconclusive"
)

// Diagnosis is the whole answer, as `doctor --json` prints it.
type Diagnosis struct {
	Schema  string                   `json:"schema"`
	Version string                   `json:"version"`
	Target  Target                   `json:"target"`
	Window  Window                   `json:"window"`
	Sources []recording.SourceStatus `json:"sources"`
	// where only the calls of some processes were asked for
	SelectedCalls *recording.SelectedCalls `json:"whom,omitempty"`
	Populations   []Population             `json:"populations"` // all calls by whose they are: the users' first
	Latency       Latency                  `json:"latency"`
	Verdict       string                   `json:"verdict"`
	Summary       string                   `json:"summary"` // the verdict in one sentence
	Findings      []cause.Finding          `json:"findings"`
	Changes       []changes.Seen           `json:"changes,omitempty"` // in order of time, the last 100
	Account       []State                  `json:"account"`
	Hops          []Hop                    `json:"hops,omitempty"` // where calls go through proxies among the nodes
	Callers       []Caller                 `json:"callers,omitempty"`
	CallersTime   []CallerTime             `json:"callers_time,omitempty"`
	Excess        Excess                   `json:"excess"`
	LostTime      LostTime                 `json:"lost_time"`        // the same by causes and states
	Worst         []Worst                  `json:"worst"`            // the slowest call of each stall
	OnCPU         []OnCPU                  `json:"on_cpu,omitempty"` // of processes with sampled CPU time
	Told          []cause.Evidence         `json:"told,omitempty"`   // by texts that were read, without a judgement
	BlindSpots    []recording.BlindSpot    `json:"blind_spots"`
	Cost          []cause.Evidence         `json:"cost"` // what the watch itself cost
}

// Target is what was watched.
type Target struct {
	Address string   `json:"address"`
	Kind    string   `json:"kind"`
	Server  string   `json:"server"`
	Nodes   []string `json:"nodes"`
}

// Window is when it was watched.
type Window struct {
	Start   time.Time `json:"start"`
	Seconds float64   `json:"seconds"`
	// WatchedSeconds is less where nothing was watched between two watches of it; 0: all of it was watched.
	WatchedSeconds float64 `json:"watched_seconds,omitempty"`
}

// Watched is how many seconds of it were watched.
func (w Window) Watched() float64 { return cmp.Or(w.WatchedSeconds, w.Seconds) }

// Population is all calls of one kind of caller.
type Population struct {
	Name string `json:"name"`         // users, probe, load or slowlog
	At   string `json:"at,omitempty"` // of users: client or server, the end of the connections at which they were timed
	// Calls of users without a reply are not among Calls.
	Calls     int `json:"calls"`
	SlowCalls int `json:"slow_calls"`
	// RecordedSlowCalls are those that were recorded one by one: the account, the findings and the worst calls are of
	// these.
	RecordedSlowCalls int `json:"recorded_slow_calls"`
	// Stalls of users are times in which at least one recorded call to a node was slow, and StalledNs is how long these
	// are together, in nanoseconds.
	Stalls    int   `json:"stalls,omitempty"`
	StalledNs int64 `json:"stalled_ns,omitempty"`
	// FailedCalls: of the probe those that failed, of users those without a reply because the server's end closed their
	// connection.
	FailedCalls int `json:"failed_calls,omitempty"`
	// Nanoseconds from when a call was due to its reply, without slowpath's own delay; 0 where not known.
	P50Ns  int64 `json:"p50_ns,omitempty"`
	P99Ns  int64 `json:"p99_ns,omitempty"`
	P999Ns int64 `json:"p999_ns,omitempty"`
	MaxNs  int64 `json:"max_ns,omitempty"`
	// WireP99Ns of users is the same from when their requests were sent, where threads waited longer than their calls
	// took: for a connection, or for the thread that sends and reads for them.
	WireP99Ns int64 `json:"wire_p99_ns,omitempty"`
}

// Latency sums up the calls, in nanoseconds from the intended start to the reply in hand. Its numbers are of different
// callers: Populations has those of each.
type Latency struct {
	Calls           int   `json:"calls"`
	SlowCalls       int   `json:"slow_calls"`
	SlowThresholdNs int64 `json:"slow_threshold_ns"`
	// FreshSlowThresholdNs is that of slowpath's calls on new connections, where it is longer: these take the round
	// trips of a handshake more than others.
	FreshSlowThresholdNs int64 `json:"fresh_slow_threshold_ns,omitempty"`
	// Calls of the server's users that the tap saw. The other values are of slowpath's own calls, where it
	// made any.
	UserCalls     int `json:"user_calls,omitempty"`
	UserSlowCalls int `json:"user_slow_calls,omitempty"`
	// FailedCalls is how many of slowpath's own calls failed: an error reply, a broken connection, no connection, or no
	// reply during an outage.
	FailedCalls int   `json:"failed_calls,omitempty"`
	P50Ns       int64 `json:"p50_ns"`
	P99Ns       int64 `json:"p99_ns"`
	P999Ns      int64 `json:"p999_ns"`
	MaxNs       int64 `json:"max_ns"`
}

// Excess is the time that callers lost, in nanoseconds: of slow calls what is above the baseline, each call by its
// weight (docs/decisions/0008-whose-excess.md), and what they lost elsewhere (docs/decisions/0018-lost-time.md).
type Excess struct {
	Ns int64 `json:"ns"`
	// UnexplainedNs is the part of it that no finding explains.
	UnexplainedNs int64 `json:"unexplained_ns"`
	// CallersNs is all time that the callers spent in calls, slow and fast, with Ns in it.
	CallersNs int64 `json:"callers_ns"`
}

// State is the time that slow calls spent in one state.
type State struct {
	Actor string  `json:"actor"`
	State string  `json:"state"`
	Ns    int64   `json:"ns"`
	Share float64 `json:"share"`
	// LostNs is the part of Ns that callers lost, as in LostTime: above the baseline, by the weight of the calls.
	LostNs int64 `json:"lost_ns"`
}

// Worst is one slow call with its account.
type Worst struct {
	Time   time.Time `json:"time"`
	Source string    `json:"source"`
	Conn   string    `json:"conn"`
	Client string    `json:"client,omitempty"` // the calling process, where it runs on this host
	Op     string    `json:"op"`
	Node   string    `json:"node"`
	Ns     int64     `json:"ns"`
	// OwnDelayNs is the part of Ns in which slowpath's own process waited for a CPU. It counts in no latency.
	OwnDelayNs int64 `json:"own_delay_ns,omitempty"`
	// SameStall is how many other slow calls waited longest with the same server, client or connection at that time.
	SameStall int    `json:"same_stall,omitempty"`
	Segments  []Part `json:"segments"`
}

// Part is a segment of a Worst call; FromNs counts from the call's intended start.
type Part struct {
	Actor   string `json:"actor"`
	State   string `json:"state"`
	FromNs  int64  `json:"from_ns"`
	ToNs    int64  `json:"to_ns"`
	Culprit string `json:"culprit"`
	Node    string `json:"node,omitempty"` // where it is another hop than the call's node
}
