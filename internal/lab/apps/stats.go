package apps

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/lab/apps/appsources/meter"
	"slowpath/internal/lab/clients/programs/protocol"
)

// Line is one kind of operation of an application in one second.
type Line = meter.Line

// Stats is what an application has done.
type Stats struct {
	// Lines are in the order in which they were reported. A second may have several lines of one operation, of several
	// processes.
	Lines []Line
}

// Operation is all operations of one kind.
type Operation struct {
	Name      string             `json:"name"`
	Done      int64              `json:"done"` // with those that failed
	Errors    int64              `json:"errors"`
	Sum       time.Duration      `json:"sum_ns"`
	Max       time.Duration      `json:"max_ns"`
	Histogram protocol.Histogram `json:"histogram"`
	LastError string             `json:"last_error,omitempty"`
}

// Since is the part of the seconds that began at a time or later.
func (s Stats) Since(t time.Time) Stats {
	return Stats{slices.DeleteFunc(slices.Clone(s.Lines), func(l Line) bool { return time.Unix(l.Unix, 0).Before(t) })}
}

// Operations sums up the lines by operation, sorted by name.
func (s Stats) Operations() []Operation {
	byName := map[string]*Operation{}
	buckets := map[string]map[int64]int64{}
	var names []string
	for _, l := range s.Lines {
		o := byName[l.Operation]
		if o == nil {
			o = &Operation{Name: l.Operation}
			byName[l.Operation], buckets[l.Operation] = o, map[int64]int64{}
			names = append(names, l.Operation)
		}
		o.Done, o.Errors, o.Sum, o.Max = o.Done+l.Done, o.Errors+l.Errors, o.Sum+l.Sum, max(o.Max, l.Max)
		if l.LastError != "" {
			o.LastError = l.LastError
		}
		for _, b := range l.Histogram {
			buckets[l.Operation][b[0]] += b[1]
		}
	}
	slices.Sort(names)
	out := make([]Operation, len(names))
	for i, name := range names {
		out[i] = *byName[name]
		for value, n := range buckets[name] {
			out[i].Histogram = append(out[i].Histogram, protocol.Bucket{value, n})
		}
		slices.SortFunc(out[i].Histogram, func(a, b protocol.Bucket) int { return cmp.Compare(a[0], b[0]) })
	}
	return out
}

// String is one line for the lab's log.
func (s Stats) String() string {
	var parts []string
	for _, o := range s.Operations() {
		text := fmt.Sprintf("%s: %d, %s, p50 %v, p99 %v, max %v", o.Name, o.Done, format.Count(o.Errors, "error"),
			format.Duration(o.Histogram.Quantile(0.5)), format.Duration(o.Histogram.Quantile(0.99)),
			format.Duration(o.Max))
		if o.LastError != "" {
			text += ", last error: " + o.LastError
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// Bounds of what is read and kept of one application.
const (
	lineLimit   = 64 << 10 // bytes
	linesLimit  = 1 << 16
	logLimit    = 4 << 10 // bytes
	bucketLimit = 1 << 12 // in one line
)

// errLine says that a line is not one of the protocol.
var errLine = errors.New("not a line of " + meter.Schema)

var operationName = regexp.MustCompile(`^[a-z][a-z-]{0,19}$`)

// parseLine reads and checks one line.
func parseLine(text []byte) (Line, error) {
	var l Line
	if err := json.Unmarshal(text, &l); err != nil {
		return l, fmt.Errorf("%w: %w", errLine, err)
	}
	bad := l.Schema != meter.Schema || !operationName.MatchString(l.Operation) || l.Unix <= 0 || l.Done <= 0 ||
		l.Errors < 0 || l.Errors > l.Done || l.Sum < 0 || l.Max < 0 || l.Max > l.Sum ||
		len(l.LastError) > 4*meter.ErrorLimit || len(l.Histogram) > bucketLimit
	rest, last := l.Done, int64(-1)
	for _, b := range l.Histogram {
		bad = bad || b[0] <= last || meter.Floor(time.Duration(b[0])) != b[0] || b[1] <= 0 || b[1] > rest
		last, rest = b[0], rest-b[1]
	}
	if bad || rest != 0 {
		return l, fmt.Errorf("%w: %.200s", errLine, text)
	}
	return l, nil
}

// collector keeps the lines of an application, and the end of everything else that it prints. Its methods are safe for
// concurrent use.
type collector struct {
	mu      sync.Mutex
	lines   []Line
	log     []byte
	worked  chan struct{} // closed at the first line with a success
	success bool
}

func newCollector() *collector { return &collector{worked: make(chan struct{})} }

// line takes one line of output.
func (c *collector) line(text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bytes.HasPrefix(text, []byte(`{"schema":`)) || bytes.HasPrefix(text, []byte(`{"schema": `)) {
		if l, err := parseLine(text); err == nil && len(c.lines) < linesLimit {
			c.lines = append(c.lines, l)
			if l.Done > l.Errors && !c.success {
				c.success = true
				close(c.worked)
			}
			return
		}
	}
	c.log = append(append(c.log, text...), "; "...)
	c.log = c.log[max(0, len(c.log)-logLimit):]
}

func (c *collector) stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{slices.Clone(c.lines)}
}

// end is the end of what it printed.
func (c *collector) end() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSuffix(strings.ToValidUTF8(string(c.log), "?"), "; ")
}
