package trace

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Summary sums up a trace.
type Summary struct {
	Seconds  float64
	Calls    int64 // all that the tap timed, slow or not, filtered or not
	Slow     int   // of these, calls of SlowNs or more
	SlowNs   int64
	Matched  int // slow calls that match the filter; the account is of these
	Filtered bool
	All      bool    // the other calls were to be shown, too
	Shown    int     // calls
	Fast     int     // other calls that match the filter, of those that the tap reported
	Reported float64 // which share of the other calls the tap reported, from 0 to 1
	// if only calls of selected processes are reported; Calls and Commands are of all
	ProcessFilter *recording.SelectedCalls
	Commands      []Command   // by the time that slow calls took, then by calls
	Account       []StateTime // by time
	Waits         []Wait      // by time
	Replies       int64       // that were matched, counted at each end
	// What is missing: replies that could not be matched to their request, reports lost between kernel and slowpath,
	// slow calls above the limit of reports per second, and how often a connection carried bytes that the kernel
	// programs do not understand (inline commands, TLS).
	Unaligned, Dropped, Unreported, Garbage int64
	// LeftOut is the share of the reads of servers that were on connections which the tap left out: see
	// tap.Options.Budget.
	LeftOut float64
}

// Command has the latencies of all calls of one command.
type Command struct {
	Op                  string
	Calls               int64
	Slow                int
	P50Ns, P99Ns, MaxNs int64
	slowNs              int64
}

// StateTime is the time that slow calls spent in one state.
type StateTime struct {
	Actor, State string
	Ns           int64
	Share        float64
}

// Wait is the time that slow calls waited for one thing. What has no ports and process numbers, so that repeated runs
// of redis-cli are one.
type Wait struct {
	Actor, State string
	What         string
	Calls        int
	Ns           int64
}

// aggregate collects a summary.
type aggregate struct {
	ops           map[string]*opAggregate
	times         map[[2]string]int64
	waits         map[[3]string]*Wait
	counters      map[string]float64
	slow, matched int
	fast          int // other calls that match
	processFilter *recording.SelectedCalls
}

type opAggregate struct {
	sides  map[string]*hdrhistogram.Histogram // server, client
	slow   int
	slowNs int64
	maxNs  int64
}

// maxNames bounds commands and culprits, which clients can choose.
const maxNames = 10_000

func newAggregate() *aggregate {
	return &aggregate{
		ops: map[string]*opAggregate{}, times: map[[2]string]int64{}, waits: map[[3]string]*Wait{},
		counters: map[string]float64{},
	}
}

func (t *aggregate) op(name string) *opAggregate {
	o := t.ops[name]
	if o == nil {
		if len(t.ops) >= maxNames {
			name = "other"
		}
		if o = t.ops[name]; o == nil {
			o = &opAggregate{sides: map[string]*hdrhistogram.Histogram{}}
			t.ops[name] = o
		}
	}
	return o
}

// histogram adds the latencies of one second: "server GET" or "client GET".
func (t *aggregate) histogram(h recording.Histogram) {
	side, name, ok := strings.Cut(h.Op, " ")
	if !ok {
		return
	}
	decoded, err := hdrhistogram.Decode(h.HDR)
	if err != nil {
		return // a damaged recording
	}
	o := t.op(name)
	if o.sides[side] == nil {
		o.sides[side] = decoded
		return
	}
	o.sides[side].Merge(decoded)
}

// slowCall adds a slow call, with its segments if it matches the filter.
func (t *aggregate) slowCall(c Call, wanted bool) {
	t.slow++
	o := t.op(c.Op)
	o.slow++
	o.slowNs += c.Ns
	o.maxNs = max(o.maxNs, c.Ns)
	if !wanted {
		return
	}
	t.matched++
	seen := map[[3]string]bool{}
	for _, s := range c.Segments {
		t.times[[2]string{s.Actor, s.State}] += s.Ns()
		own := s.Actor == recording.Server && s.State == recording.Exec // a command does not wait for itself
		if s.Culprit != "" && !own {
			what := [3]string{s.Actor, s.State, generalize(s.Culprit)}
			t.addWait(what, s.Ns(), !seen[what])
			seen[what] = true
		}
	}
}

func (t *aggregate) addWait(what [3]string, ns int64, newCall bool) {
	w := t.waits[what]
	if w == nil {
		if len(t.waits) >= maxNames {
			return
		}
		w = &Wait{Actor: what[0], State: what[1], What: what[2]}
		t.waits[what] = w
	}
	w.Ns += ns
	if newCall {
		w.Calls++
	}
}

var (
	processNumber = regexp.MustCompile(`\[\d+\]`)
	port          = regexp.MustCompile(`:\d+( |$)`)
)

// generalize removes process numbers and ports from a culprit.
func generalize(culprit string) string {
	return port.ReplaceAllString(processNumber.ReplaceAllString(culprit, ""), "$1")
}

func (t *aggregate) summary() Summary {
	s := Summary{
		ProcessFilter: t.processFilter, Slow: t.slow, Matched: t.matched,
		Unaligned:  int64(t.counter(series.TapUnaligned)),
		Dropped:    int64(t.counter(series.TapDropped)),
		Unreported: int64(t.counter(series.TapUnreported)), Garbage: int64(t.counter(series.TapGarbage)),
		Replies: int64(t.counter(series.TapCallsServer) + t.counter(series.TapCallsClient)),
	}
	if out := t.counter(series.TapLeftOut); out > 0 {
		s.LeftOut = out / (out + t.counter(series.TapReads))
	}
	s.Fast, s.Reported = t.fast, t.reported()
	for name, o := range t.ops {
		c := o.command(name)
		s.Calls += c.Calls
		s.Commands = append(s.Commands, c)
	}
	slices.SortFunc(s.Commands, func(a, b Command) int {
		return cmp.Or(cmp.Compare(b.slowNs, a.slowNs), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Op, b.Op))
	})
	var all int64
	for _, ns := range t.times {
		all += ns
	}
	for k, ns := range t.times {
		s.Account = append(s.Account, StateTime{k[0], k[1], ns, float64(ns) / float64(max(all, 1))})
	}
	slices.SortFunc(s.Account, func(a, b StateTime) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Actor+a.State, b.Actor+b.State))
	})
	for w := range maps.Values(t.waits) {
		s.Waits = append(s.Waits, *w)
	}
	slices.SortFunc(s.Waits, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.What, b.What), cmp.Compare(a.State, b.State))
	})
	return s
}

// counter is the last value of a counter of the tap.
func (t *aggregate) counter(of series.Name) float64 { return t.counters[of.Name] }

// reported is which share of the calls that were not slow the programs reported, each end of a connection for itself.
func (t *aggregate) reported() float64 {
	fast := t.counter(series.TapCallsServer) + t.counter(series.TapCallsClient) - t.counter(series.TapSlow)
	if fast <= 0 {
		return 1
	}
	return min(t.counter(series.TapSampled)/fast, 1)
}

// command uses the end that saw more calls; if equal the client's, which includes the network.
func (o *opAggregate) command(name string) Command {
	c := Command{Op: name, Slow: o.slow, slowNs: o.slowNs, MaxNs: o.maxNs}
	client, server := recording.FeltAtClients(o.sides), o.sides[recording.Server]
	h := client
	if client == nil || server != nil && server.TotalCount() > client.TotalCount() {
		h = server
	}
	if h != nil {
		c.Calls, c.P50Ns, c.P99Ns = h.TotalCount(), h.ValueAtQuantile(50), h.ValueAtQuantile(99)
		if c.MaxNs == 0 { // none was slow; of slow ones the exact time is known
			c.MaxNs = h.Max()
		}
	}
	c.Calls = max(c.Calls, int64(c.Slow))
	c.P50Ns, c.P99Ns = min(c.P50Ns, c.MaxNs), min(c.P99Ns, c.MaxNs) // the steps of the histogram are coarser
	return c
}
