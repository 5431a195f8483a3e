package cause_test

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
)

// Small recordings of what the tap sees of callers, for the causes on the client's side. A process is named
// by its comm and its pid; a connection by the port of the client's end.

const (
	app    = 100 // a pid
	second = int64(1e9)
)

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// life is a connection of the application from its dial to its close.
type life struct {
	port       int
	from, to   int64 // open to close; 0: before, after the watch
	work       int64 // calls of the application
	ops        []string
	trips      int
	callNs     int64
	idleNs     int64
	waiting    int
	by         string
	firstAfter int64 // from the handshake to the first call
	remote     bool  // the client is on another host
	pid        int   // 0: app
	dialNs     int64 // 0: the default
}

const dialNs = int64(50e3)

// conn adds a connection.
func (e edge) conn(l life) edge {
	d := recording.ConnDetail{Client: address(l.port), PID: app, Comm: "app", Side: recording.Client, DialNs: dialNs}
	if l.pid > 0 {
		d.PID = l.pid
	}
	if l.remote {
		d.Client, d.PID, d.Comm, d.Side, d.DialNs = fmt.Sprintf("10.9.9.9:%d", l.port), 0, "", recording.Server, 0
	}
	if l.by == "" {
		l.by = recording.Client
	}
	if l.dialNs > 0 {
		d.DialNs = l.dialNs
	}
	if l.from > 0 {
		e.event(recording.SourceTap, recording.KindOpen, l.from, 0, d)
		e.event(recording.SourceTap, recording.KindHandshake, l.from-d.DialNs,
			d.DialNs+int64(l.trips+1)*l.callNs+l.firstAfter,
			recording.HandshakeDetail{
				Client: d.Client, PID: d.PID, Comm: d.Comm, Side: d.Side, DialNs: d.DialNs,
				Ops: l.ops, RoundTrips: l.trips, IdleNs: max(l.firstAfter, 1), Op: "GET",
			})
	}
	d.Calls = l.work + int64(len(l.ops))
	d.InFlightNs = (l.work + int64(l.trips)) * l.callNs
	if l.waiting > 0 {
		d.InFlightNs += l.idleNs
	}
	if l.to == 0 && l.from > 0 {
		at := min(l.from+second, edgeEnd-1)
		for name, v := range map[string]int64{
			"calls": d.Calls, "in_flight_ns": d.InFlightNs,
			"idle_ns": max(at-l.from-d.InFlightNs, 0),
		} {
			e.Sample(recording.Sample{
				TimeNs: at, Source: recording.SourceTap, Subject: recording.ConnPrefix + d.Client,
				Name: name, Value: float64(v),
			})
		}
	}
	if l.to > 0 {
		d.AgeNs, d.IdleNs, d.By, d.Waiting = l.to-l.from, l.idleNs, l.by, l.waiting
		e.event(recording.SourceTap, recording.KindClose, l.to, 0, d)
	}
	return e
}

// used adds a connection that is open all the time, with its samples.
func (e edge) used(pid int, comm string, port int, callsPerSecond, busy float64) edge {
	subject := recording.ConnPrefix + address(port)
	e.Snapshot(recording.Snapshot{
		TimeNs: 1e6, Source: recording.SourceTap, Subject: subject, Name: "ends",
		Body: recording.Detail(recording.ConnEnds{Node: edgeNode, PID: pid, Comm: comm}),
	})
	for s := range int64(10) {
		at, passed := s*second+1e6, float64(s)
		for name, v := range map[string]float64{
			"calls": callsPerSecond * passed, "in_flight_ns": busy * passed * 1e9,
			"idle_ns": (1 - busy) * passed * 1e9,
		} {
			e.Sample(recording.Sample{TimeNs: at, Source: recording.SourceTap, Subject: subject, Name: name, Value: v})
		}
	}
	return e
}

// all are the latencies of all calls of one command, from the clients' end.
func (e edge) all(op string, calls int, ns int64) edge {
	return e.allAt(recording.Client, op, calls, ns)
}

// allAt adds calls as one of the ends saw them.
func (e edge) allAt(end, op string, calls int, ns int64) edge {
	h := hdrhistogram.New(1, int64(60e9), 2)
	_ = h.RecordValues(ns, int64(calls))
	hdr, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err)
	}
	e.Histogram(recording.Histogram{
		Second: 1, Source: recording.SourceTap, Node: edgeNode, Op: end + " " + op,
		HDR: hdr,
	})
	return e
}

// slowCall is a slow call of the application, with what its client did from the reply on.
func (e edge) slowCall(at, ns int64, port int, states ...recording.Segment) edge {
	const served = int64(300e3)
	segs := []recording.Segment{
		{Actor: recording.Network, State: recording.Out, FromNs: at, ToNs: at + served/3},
		{Actor: recording.Server, State: recording.Exec, FromNs: at + served/3, ToNs: at + 2*served/3},
		{Actor: recording.Network, State: recording.Back, FromNs: at + 2*served/3, ToNs: at + served},
	}
	from := at + served
	for i, s := range states {
		s.Actor, s.FromNs, s.ToNs = recording.Client, from, from+(at+ns-from)/int64(len(states)-i)
		from = s.ToNs
		segs = append(segs, s)
	}
	e.Call(recording.Call{
		Source: recording.SourceTap, Conn: address(port), Op: "GET", Node: edgeNode, Slot: -1,
		Side: "both", Client: fmt.Sprintf("app[%d]", app),
		IntendedNs: at, StartNs: at, EndNs: at + ns,
	}, segs...)
	return e
}

// slowCalls are some of them on several connections, one each 100 ms, each with one state to its end.
func (e edge) slowCalls(count int, ns int64, state string) edge {
	for i := range count {
		e.slowCall(second+int64(i)*100*edgeMs, ns, 4000+i%5, recording.Segment{State: state})
	}
	return e
}

// wait is one wait of a thread of the application.
func (e edge) wait(kind string, at, ns int64, tid int, by *recording.Task) edge {
	e.Event(recording.Event{
		TimeNs: at, DurationNs: ns, Source: recording.SourceTap, Subject: fmt.Sprintf("%s%d",
			recording.ProcessPrefix, app), Kind: kind,
		Detail: recording.Detail(recording.ThreadDetail{TID: tid, Share: 1, Comm: "app", By: by}),
	})
	return e
}

// waits are waits during the slow calls of slowCalls.
func (e edge) waits(count int, ns int64, kind string, by *recording.Task) edge {
	for i := range count {
		e.wait(kind, second+int64(i)*100*edgeMs, ns, app+i%4, by)
	}
	return e
}

// client is a series of the application's process.
func (e edge) client(source, name string, from, to float64) edge {
	for at, v := range map[int64]float64{0: from, edgeEnd: to} {
		e.Sample(recording.Sample{TimeNs: at, Source: source, Subject: fmt.Sprintf("%s%d", recording.ProcessPrefix,
			app), Name: name, Value: v})
	}
	return e
}

// noLoop: no thread of the client's process waits in epoll.
func (e edge) noLoop() edge {
	e.Snapshot(recording.Snapshot{
		Source: recording.SourceTap, Subject: fmt.Sprintf("%s%d", recording.ProcessPrefix, app),
		Name: recording.SnapshotWaits, Body: recording.Detail(recording.ThreadWaits{Threads: 1, NoLoop: true}),
	})
	return e
}

// runtime adds what the host source read of the runtime of the client's process.
func (e edge) runtime(body string) edge {
	e.Snapshot(recording.Snapshot{
		Source: recording.SourceHost, Subject: fmt.Sprintf("%s%d", recording.ProcessPrefix, app),
		Name: recording.SnapshotRuntime, Body: body,
	})
	return e
}
