// Package incidents keeps on disk what slowpath's agent found: incidents with their recordings and verdicts, the
// history of minutes, and marks such as deploys. All of it is bounded, and survives a kill.
package incidents

import "time"

// Incident is a time in which calls were slow or failed, or that somebody asked for.
type Incident struct {
	ID    string    `json:"id"`           // 20261124T031207Z-1: sorts by time, safe in paths and URLs
	Start time.Time `json:"start"`        // UTC
	End   time.Time `json:"end,omitzero"` // zero while it is watched
	Cause string    `json:"cause"`        // of the first finding; empty: none
	// Summary is the sentence of the verdict.
	Summary     string `json:"summary"`
	SlowCalls   int64  `json:"slow_calls"`
	FailedCalls int64  `json:"failed_calls"`
	Verdict     string `json:"verdict"` // healthy, findings, inconclusive; empty until it was judged
	State       string `json:"state"`   // one of State…
	Trigger     string `json:"trigger"` // in a sentence what set it off
	Target      string `json:"target"`
	// Nodes, Callers and OtherCauses are what else it can be found by: of each a bounded number.
	Nodes       []string `json:"nodes,omitempty"`
	Callers     []string `json:"callers,omitempty"`
	OtherCauses []string `json:"other_causes,omitempty"`
	Error       string   `json:"error,omitempty"` // why it failed
	// Repeat says that it is not the first one of its cause; the summary ends with it, too.
	Repeat *Repeat `json:"repeat,omitempty"`
	// CutOff says that slowpath ended while it went on, so that its end is not known; the summary ends with it, too.
	CutOff bool `json:"cut_off,omitempty"`
	// RecordingBytes is the size of its recording; 0: there is none.
	RecordingBytes int64 `json:"recording_bytes"`
	// Changed is when it was written last. No two incidents have the same one. Zero: an earlier version wrote it.
	Changed time.Time `json:"changed,omitzero"`
}

// States of an incident.
const (
	StateWatching = "watching"
	StateJudging  = "judging"
	StateJudged   = "judged"
	StateFailed   = "failed"
)

// Query chooses incidents. Zero fields choose all.
type Query struct {
	From, To time.Time // that overlap [From, To)
	Text     string    // whose id, causes, summary, trigger, target, nodes or callers contain it, in any case
	Limit    int       // at most so many; 0: DefaultLimit
	Before   string    // older than the incident with this id: the next page
}

// DefaultLimit and MaxLimit bound a list.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// Limits bound what is kept. Zero fields are the defaults.
type Limits struct {
	MaxBytes int64         // of all incidents
	MaxAge   time.Duration // since the end of one
	// MaxHealthyAge is that of incidents whose verdict is healthy.
	MaxHealthyAge time.Duration
	MaxCount      int
}

// Defaults of Limits.
const (
	DefaultMaxBytes = 2 << 30
	DefaultMaxAge   = 30 * 24 * time.Hour
	DefaultMaxCount = 10_000

	DefaultMaxHealthyAge = 24 * time.Hour
)

// Mark is something that somebody did, such as a deploy.
type Mark struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// Minute is what one minute of calls to a node took: those of users, or slowpath's own.
type Minute struct {
	Start  int64 // Unix seconds, a multiple of 60
	Node   string
	Own    bool // slowpath's own calls
	Calls  int64
	Slow   int64
	Failed int64
	P50Ns  int64
	P99Ns  int64
	MaxNs  int64
	// ThresholdNs is from when on a call was slow, at the end of the minute; 0: not known.
	ThresholdNs int64
	// AtServer says that calls were seen at the server's end: it has those of all clients, and not of this host alone.
	AtServer bool
	// Complete says that the node was watched during the whole minute, and that no call in it was missed.
	Complete bool
	HDR      []byte // HdrHistogram V2, compressed, of nanoseconds; nil: none
}
