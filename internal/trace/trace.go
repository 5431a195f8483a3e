// Package trace shows single calls of the tap, live or from a recording: it filters them, groups those that
// waited for the same thing, sums them up, and exports them for Perfetto.
package trace

import (
	"time"

	"slowpath/internal/recording"
)

// Schema names the JSON document of a Call (docs/json.md).
const Schema = "slowpath.trace/v1"

// Call is one call with its account, as `trace --json` prints it.
type Call struct {
	Schema       string    `json:"schema"`
	Time         time.Time `json:"time"` // of its begin
	Op           string    `json:"op"`
	Node         string    `json:"node"`
	Client       string    `json:"client"`  // address of the client's end
	Process      string    `json:"process"` // "redis-cli[1234]", if the client is on this host
	Side         string    `json:"side"`    // from which end it was seen: server, client, both
	Ns           int64     `json:"ns"`
	RequestBytes int64     `json:"request_bytes"`
	ReplyBytes   int64     `json:"reply_bytes"`
	Error        string    `json:"error"`
	Segments     []Segment `json:"segments"`

	server string // the process that serves, like Process, where a recording names it
}

// Segment is a part of a Call, in nanoseconds from its begin. The segments of a call are disjoint and add up to it.
type Segment struct {
	Actor   string `json:"actor"`
	State   string `json:"state"`
	FromNs  int64  `json:"from_ns"`
	ToNs    int64  `json:"to_ns"`
	Culprit string `json:"culprit"`
}

// Ns is the length of the segment.
func (s Segment) Ns() int64 { return s.ToNs - s.FromNs }

// Of makes a Call of the rows of a recording.
func newCall(c recording.Call, segs []recording.Segment) Call {
	out := Call{
		Schema: Schema, Time: time.Unix(0, c.IntendedNs).UTC(), Op: c.Op, Node: c.Node, Client: c.Conn,
		Process: c.Client, Side: c.Side,
		Ns: c.EndNs - c.IntendedNs, RequestBytes: c.RequestBytes, ReplyBytes: c.ReplyBytes, Error: c.Error,
		Segments: []Segment{},
	}
	for _, s := range segs {
		out.Segments = append(out.Segments, Segment{
			s.Actor, s.State, s.FromNs - c.IntendedNs, s.ToNs - c.IntendedNs,
			s.Culprit,
		})
	}
	return out
}

// FromNs and ToNs are when the call began and ended, in nanoseconds since the Unix epoch.
func (c Call) FromNs() int64 { return c.Time.UnixNano() }
func (c Call) ToNs() int64   { return c.FromNs() + c.Ns }

// Caller is the process that made the call, or if that is not known the address of the client.
func (c Call) caller() string {
	if c.Process != "" {
		return c.Process
	}
	return c.Client
}

// dominant is the longest segment of the call; without segments, all of it as unexplained.
func (c Call) dominant() Segment {
	best := Segment{Actor: recording.Nobody, State: recording.Unexplained, ToNs: c.Ns}
	for i, s := range c.Segments {
		if i == 0 || s.Ns() > best.Ns() {
			best = s
		}
	}
	return best
}
