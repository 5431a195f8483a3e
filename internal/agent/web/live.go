package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"slowpath/internal/live"
	"slowpath/internal/report"
)

// Names of the documents about what happens now.
const (
	LiveSchema = "slowpath.live/v1" // each event of /api/v1/live
	SlowSchema = "slowpath.slow/v1" // /api/v1/slow
)

// Live is one second.
type Live struct {
	Schema          string     `json:"schema"`
	Second          time.Time  `json:"second"` // the newest that is complete
	SlowThresholdNs int64      `json:"slow_threshold_ns"`
	Nodes           []LiveNode `json:"nodes"`
	// Slow are slow calls that came since the event before, the newest first; More that there were others.
	Slow []SlowCall `json:"slow"`
	More bool       `json:"more_slow"`
}

// LiveNode is what one second of calls to a node took.
type LiveNode struct {
	Node   string `json:"node"`
	Whose  string `json:"whose"` // users or own
	Calls  int64  `json:"calls"`
	Slow   int64  `json:"slow"`
	Failed int64  `json:"failed"`
	P50Ns  int64  `json:"p50_ns"`
	P99Ns  int64  `json:"p99_ns"`
	MaxNs  int64  `json:"max_ns"`
}

// SlowCalls are the newest slow calls, the newest first.
type SlowCalls struct {
	Schema          string     `json:"schema"`
	SlowThresholdNs int64      `json:"slow_threshold_ns"`
	Calls           []SlowCall `json:"calls"`
}

// SlowCall is a call that was slow, with the parts of its time.
type SlowCall struct {
	Number  uint64    `json:"number"` // grows with each
	Time    time.Time `json:"time"`   // when it was due
	Whose   string    `json:"whose"`  // users or own
	Op      string    `json:"op"`
	Node    string    `json:"node"`
	Client  string    `json:"client"`  // address of the client's end
	Process string    `json:"process"` // that called, "redis-cli[1234]", where it is on this host
	Ns      int64     `json:"ns"`      // its segments add up to it
	// OwnDelayNs is the part of Ns in which slowpath's own process waited for a CPU. It counts in no latency.
	OwnDelayNs int64     `json:"own_delay_ns,omitempty"`
	Error      string    `json:"error"`
	Segments   []Segment `json:"segments"`
}

// Segment is a part of the time of a call, in nanoseconds from when it was due.
type Segment struct {
	Actor   string `json:"actor"`
	State   string `json:"state"`
	Name    string `json:"name"` // of the two, for people
	Culprit string `json:"culprit"`
	FromNs  int64  `json:"from_ns"`
	ToNs    int64  `json:"to_ns"`
}

const (
	defaultSlow = 100
	maxSlow     = 1000
	eventSlow   = 100 // slow calls of one event
	maxStreams  = 128 // browsers that look at live calls at once
	waiting     = 4   // events that wait for one of them; what comes then is left out
)

func slowCalls(all []live.SlowCall) []SlowCall {
	out := make([]SlowCall, 0, len(all))
	for _, c := range all {
		one := SlowCall{
			Number: c.Number, Time: time.Unix(0, c.Call.IntendedNs).UTC(), Whose: string(c.Whose), Op: bound(c.Call.Op),
			Node: bound(c.Call.Node), Client: bound(c.Call.Conn), Process: bound(c.Call.Client),
			Ns: c.Call.EndNs - c.Call.IntendedNs, OwnDelayNs: c.OwnDelayNs, Error: bound(c.Call.Error),
			Segments: make([]Segment, 0, len(c.Segments)),
		}
		for _, s := range c.Segments {
			one.Segments = append(one.Segments, Segment{
				bound(s.Actor), bound(s.State), bound(report.StateName(s.Actor, s.State)), bound(s.Culprit),
				s.FromNs - c.Call.IntendedNs, s.ToNs - c.Call.IntendedNs,
			})
		}
		out = append(out, one)
	}
	return out
}

// slow answers /api/v1/slow.
func (s *Server) slow(w http.ResponseWriter, r *http.Request) error {
	limit, err := intParameter(r, "limit", 1, maxSlow, defaultSlow)
	if err != nil {
		return err
	}
	sendJSON(w, http.StatusOK, SlowCalls{
		SlowSchema, int64(s.o.View.Threshold()), slowCalls(s.o.View.Slow(limit)),
	})
	return nil
}

// stream makes one event per second while somebody listens, and gives it to all who do.
type stream struct {
	view *live.View
	now  func() time.Time

	mu        sync.Mutex
	listeners map[chan []byte]bool
	wake      chan struct{} // the first listener came
	number    uint64        // of the newest slow call that was sent
}

func newStream(v *live.View, now func() time.Time) *stream {
	return &stream{view: v, now: now, listeners: map[chan []byte]bool{}, wake: make(chan struct{}, 1)}
}

// join gives a channel with events; nil: there are too many listeners.
func (s *stream) join() chan []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listeners) >= maxStreams {
		return nil
	}
	if len(s.listeners) == 0 {
		s.number = 0
		if newest := s.view.Slow(1); len(newest) > 0 {
			s.number = newest[0].Number
		}
	}
	c := make(chan []byte, waiting)
	s.listeners[c] = true
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return c
}

func (s *stream) leave(c chan []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, c)
}

func (s *stream) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.listeners)
}

// run sends events until the context ends. It costs nothing while nobody listens.
func (s *stream) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if s.count() == 0 {
			select {
			case <-ctx.Done():
				return
			case <-s.wake:
				tick.Reset(time.Second)
			}
		}
		s.send()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *stream) send() {
	document := s.event()
	var buf bytes.Buffer
	buf.WriteString("data: ")
	if err := json.NewEncoder(&buf).Encode(document); err != nil { // it ends in a newline, and has no other
		return
	}
	buf.WriteByte('\n')
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.listeners {
		select {
		case c <- buf.Bytes():
		default: // it is slow, and misses this second
		}
	}
}

// event is what came since the last one.
func (s *stream) event() Live {
	second := s.view.Complete() - 1
	e := Live{
		Schema: LiveSchema, Second: time.Unix(second, 0).UTC(), SlowThresholdNs: int64(s.view.Threshold()),
		Nodes: []LiveNode{},
	}
	for _, one := range s.view.Seconds(second, second+1) {
		e.Nodes = append(e.Nodes, LiveNode{
			bound(one.Node), string(one.Whose), one.Calls, one.Slow, one.Failed, one.Latencies.Quantile(.5),
			one.Latencies.Quantile(.99), one.Latencies.MaxNs(),
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := s.view.Slow(eventSlow + 1)
	for i, c := range newest {
		if c.Number <= s.number {
			newest = newest[:i]
			break
		}
	}
	if e.More = len(newest) > eventSlow; e.More {
		newest = newest[:eventSlow]
	}
	if len(newest) > 0 {
		s.number = newest[0].Number
	}
	e.Slow = slowCalls(newest)
	return e
}

// live answers /api/v1/live: server-sent events, one per second.
func (s *Server) live(w http.ResponseWriter, r *http.Request) error {
	events := s.stream.join()
	if events == nil {
		w.Header().Set("Retry-After", "30")
		sendError(w, r, http.StatusServiceUnavailable, "too many look at live calls already: try again later")
		return nil
	}
	defer s.stream.leave(events)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	if err := out.SetReadDeadline(time.Time{}); err != nil { // the request was read; this goes on for hours
		return err
	}
	for {
		if err := out.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return nil // it has gone
		}
		select {
		case <-r.Context().Done():
			return nil
		case event := <-events:
			if _, err := w.Write(event); err != nil {
				return nil // it has gone
			}
		}
	}
}
