package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Summary is what a program prints at its end, as one line of JSON: the client's own view of its calls. A call takes
// from the call of the library to its return, including waits for a connection, dialling and retries. Failed calls
// count too.
type Summary struct {
	Schema string `json:"schema"`
	// with its version, from the build or from the library: "go-redis 9.23.0"
	Library string `json:"library"`
	Calls   int64  `json:"calls"`
	Errors  int64  `json:"errors"`
	// by KindTimeout and so on, or the first word of the error reply: MOVED, CLUSTERDOWN
	ErrorKinds map[string]int64 `json:"errors_by_kind,omitempty"`
	LastError  string           `json:"last_error,omitempty"`
	StartUnix  int64            `json:"start_unix_ns"` // when counting started
	Ran        time.Duration    `json:"ran_ns"`        // how long it counted
	PerSecond  []Second         `json:"per_second"`    // by the second in which calls ended
	Histogram  Histogram        `json:"histogram"`
	Max        time.Duration    `json:"max_ns"`
	CPU        time.Duration    `json:"cpu_ns"` // user and system time of the process, since its start
	Dials      int64            `json:"dials"`  // connections that were opened; -1: the library does not say
	Pool       Pool             `json:"pool"`
	GCs        int64            `json:"gcs,omitempty"`       // garbage collections of the whole heap,
	GCTime     time.Duration    `json:"gc_ns,omitempty"`     // their time together,
	GCMax      time.Duration    `json:"gc_max_ns,omitempty"` // and of the longest
	Slices     []Slice          `json:"slices,omitempty"`    // from StartUnix, each as long as Options.Slice
}

// Second counts the calls that ended in one second.
type Second struct {
	Calls  int64 `json:"calls"`
	Errors int64 `json:"errors"`
}

// Pool is what the library says about its connections at the end, to all nodes together. Unknown values are 0.
type Pool struct {
	Connections int64         `json:"connections"`
	Idle        int64         `json:"idle"`
	Hits        int64         `json:"hits,omitempty"`     // calls that found a free connection
	Misses      int64         `json:"misses,omitempty"`   // calls that did not
	Timeouts    int64         `json:"timeouts,omitempty"` // calls that gave up waiting for one
	Stale       int64         `json:"stale,omitempty"`    // connections that were closed because of their age
	Waits       int64         `json:"waits,omitempty"`    // calls that waited for a connection,
	Wait        time.Duration `json:"wait_ns,omitempty"`  // and how long they waited together
}

// Kinds of errors that are not error replies. The kind of an error reply is its first word: MOVED, LOADING, ERR.
const (
	KindPoolTimeout = "pool-timeout" // no connection became free
	KindTimeout     = "timeout"      // no reply in time
	KindConnection  = "connection"   // refused, reset, closed
	KindOther       = "other"
)

// SummaryLimit bounds the size of a summary, in bytes. That of an hour with all buckets has 300 kB.
const SummaryLimit = 16 << 20

// ErrSummary says that a program did not print a valid summary; the message says what is wrong.
var ErrSummary = errors.New("not a summary of " + Schema)

// ParseSummary reads what a program printed. Errors match ErrSummary.
func ParseSummary(text []byte) (Summary, error) {
	var s Summary
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return s, fmt.Errorf("%w: it printed nothing", ErrSummary)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return Summary{}, fmt.Errorf("%w: %w", ErrSummary, err)
	}
	if err := s.check(); err != nil {
		return Summary{}, fmt.Errorf("%w: %w", ErrSummary, err)
	}
	return s, nil
}

func (s Summary) check() error {
	if s.Schema != Schema {
		return fmt.Errorf("schema %q", s.Schema)
	}
	if err := s.Histogram.check(); err != nil {
		return err
	}
	seconds, failed, kinds := int64(0), int64(0), int64(0)
	for _, t := range s.PerSecond {
		if t.Calls < 0 || t.Errors < 0 || t.Errors > t.Calls || t.Calls > s.Calls-seconds {
			return fmt.Errorf("per_second: %d calls and %d errors in one second", t.Calls, t.Errors)
		}
		seconds, failed = seconds+t.Calls, failed+t.Errors
	}
	for kind, n := range s.ErrorKinds {
		if n < 0 || n > s.Errors-kinds {
			return fmt.Errorf("errors_by_kind: %d of %q", n, kind)
		}
		kinds += n
	}
	for _, t := range s.Slices {
		if t.Operations < 0 || t.Failed < 0 || t.Failed > t.Operations || t.Ns < 0 {
			return fmt.Errorf("slices: %d operations, %d of them failed, of %d ns", t.Operations, t.Failed, t.Ns)
		}
	}
	switch n := s.Histogram.Count(); {
	case n != s.Calls || seconds != s.Calls:
		return fmt.Errorf("calls: %d, by the histogram %d, by the seconds %d", s.Calls, n, seconds)
	case failed != s.Errors || kinds != s.Errors:
		return fmt.Errorf("errors: %d, by the seconds %d, by their kinds %d", s.Errors, failed, kinds)
	case s.Ran < 0 || s.CPU < 0 || s.Max < 0 || s.Dials < -1:
		return errors.New("a negative duration or number of dials")
	}
	return nil
}

// PerSecondMean is the mean number of successful calls per second; 0 if nothing was counted.
func (s Summary) PerSecondMean() float64 {
	if s.Ran <= 0 {
		return 0
	}
	return float64(s.Calls-s.Errors) / s.Ran.Seconds()
}

// String is a summary on one line, for the lab's log.
func (s Summary) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	out := fmt.Sprintf("%d calls in %v, %d errors, p50 %v, p99 %v, max %v, %d dials, CPU %v", s.Calls,
		s.Ran.Round(time.Millisecond), s.Errors,
		round(s.Histogram.Quantile(0.5)), round(s.Histogram.Quantile(0.99)), round(s.Max), s.Dials,
		s.CPU.Round(time.Millisecond))
	if s.Pool.Waits > 0 {
		out += fmt.Sprintf(", %d waited %v for a connection", s.Pool.Waits, s.Pool.Wait.Round(time.Millisecond))
	}
	if s.GCs > 0 {
		out += fmt.Sprintf(", %d collections of %v, the longest %v", s.GCs, s.GCTime.Round(time.Millisecond),
			round(s.GCMax))
	}
	if s.LastError != "" {
		out += ", last error: " + s.LastError
	}
	return out
}
