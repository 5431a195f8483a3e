package top

import (
	"time"
)

// Schema names the JSON document of a second (docs/json.md).
const Schema = "slowpath.top/v1"

// Document is a frame for programs, as `top --json` prints it. Times are nanoseconds.
type Document struct {
	Schema         string    `json:"schema"`
	Time           time.Time `json:"time"` // the end of the second that users and own are of
	WatchedSeconds float64   `json:"watched_seconds"`
	// Target is the first server, Server what it is, Nodes how many are watched.
	Target          string `json:"target"`
	Server          string `json:"server"`
	Nodes           int    `json:"nodes"`
	SlowThresholdNs int64  `json:"slow_threshold_ns"`
	// UsersUnseen says why no calls of users can be seen; absent where they can.
	UsersUnseen string            `json:"users_unseen,omitempty"`
	Users       Numbers           `json:"users"`
	UsersMinute Numbers           `json:"users_minute"`
	Own         Numbers           `json:"own"`
	OwnMinute   Numbers           `json:"own_minute"`
	Callers     []DocumentCaller  `json:"callers"`
	Commands    []DocumentCommand `json:"commands"`
	Waits       []DocumentWait    `json:"waits"`
	Verdict     *DocumentVerdict  `json:"verdict,omitempty"` // absent before the first
	Cost        DocumentCost      `json:"cost"`
	// Final: the watch has ended, and the verdict is of all of it.
	Final bool `json:"final"`
}

// DocumentCaller is a Caller.
type DocumentCaller struct {
	Name           string  `json:"name"`
	CallsPerSecond float64 `json:"calls_per_second"`
	SlowCalls      int64   `json:"slow_calls"`
	LostNs         int64   `json:"lost_ns"`
}

// DocumentCommand is a Command.
type DocumentCommand struct {
	Node           string  `json:"node"`
	Op             string  `json:"op"`
	CallsPerSecond float64 `json:"calls_per_second"`
	P50Ns          int64   `json:"p50_ns"`
	P99Ns          int64   `json:"p99_ns"`
	MaxNs          int64   `json:"max_ns"`
}

// DocumentWait is a Wait.
type DocumentWait struct {
	Actor   string  `json:"actor"`
	State   string  `json:"state"`
	Culprit string  `json:"culprit"`
	Calls   int64   `json:"calls"`
	Ns      int64   `json:"ns"`
	Share   float64 `json:"share"`
}

// DocumentVerdict is a Verdict.
type DocumentVerdict struct {
	Verdict string    `json:"verdict"`         // healthy, findings, inconclusive; empty where judging failed
	Cause   string    `json:"cause,omitempty"` // of the first finding
	Summary string    `json:"summary"`
	End     time.Time `json:"end"` // of the time that was judged
	Seconds float64   `json:"seconds"`
	CPUNs   int64     `json:"cpu_ns"` // of judging
}

// DocumentCost is a Cost, in parts of a core.
type DocumentCost struct {
	Process     float64  `json:"process"`
	Screen      float64  `json:"screen"`
	Verdicts    float64  `json:"verdicts"`
	Kernel      *float64 `json:"kernel,omitempty"` // absent where the kernel does not measure it
	MemoryBytes int64    `json:"memory_bytes"`
}

// maxDocumentRows bounds the lists of a document.
const maxDocumentRows = 20

// Document is the frame for programs.
func (f Frame) Document() Document {
	d := Document{
		Schema: Schema, Time: f.Time.UTC(), WatchedSeconds: f.Watched.Seconds(), Target: f.Target, Server: f.Server,
		Nodes: f.Nodes, SlowThresholdNs: f.SlowNs, UsersUnseen: f.UsersUnseen,
		Users: f.Users, UsersMinute: f.UsersMinute, Own: f.Own,
		OwnMinute: f.OwnMinute,
		Callers:   []DocumentCaller{}, Commands: []DocumentCommand{}, Waits: []DocumentWait{},
		Cost: DocumentCost{
			Process: f.Cost.Process, Screen: f.Cost.Screen, Verdicts: f.Cost.Verdicts, MemoryBytes: f.Cost.Bytes,
		},
	}
	if f.Cost.Kernel >= 0 {
		d.Cost.Kernel = &f.Cost.Kernel
	}
	for _, c := range f.Callers[:min(len(f.Callers), maxDocumentRows)] {
		d.Callers = append(d.Callers, DocumentCaller{c.Name, c.PerSecond, c.Slow, c.LostNs})
	}
	for _, c := range f.Commands[:min(len(f.Commands), maxDocumentRows)] {
		d.Commands = append(d.Commands, DocumentCommand{c.Node, c.Op, c.perSecond(), c.P50Ns, c.P99Ns, c.MaxNs})
	}
	for _, w := range f.Waits[:min(len(f.Waits), maxDocumentRows)] {
		d.Waits = append(d.Waits, DocumentWait{w.Actor, w.State, w.Culprit, w.Calls, w.Ns, w.Share})
	}
	if v := f.Verdict; v != nil {
		d.Verdict = v.document()
	}
	return d
}

func (v Verdict) document() *DocumentVerdict {
	d := &DocumentVerdict{
		Verdict: v.Diagnosis.Verdict, Summary: v.Diagnosis.Summary, End: v.At.UTC(), Seconds: v.Of.Seconds(),
		CPUNs: int64(v.Took),
	}
	if len(v.Diagnosis.Findings) > 0 {
		d.Cause = v.Diagnosis.Findings[0].Cause
	}
	if v.Failed != "" {
		d.Summary = "judging failed: " + v.Failed
	}
	return d
}
