// Package recording is the file format between the sources and the diagnosis: what was seen, as rows of one SQLite
// file.
//
// The tables are documented in docs/recording.md. Keys and values of users are never stored, only command names, sizes
// and a keyed hash; passwords appear nowhere.
package recording

import (
	"strconv"
	"strings"
)

// SchemaVersion is meta.schema_version of the files that this program writes. A reader refuses a newer one.
const SchemaVersion = 5

// Call is one command and its reply, as its caller sees it. Times are nanoseconds since the Unix epoch.
type Call struct {
	ID           int64
	Source       string // which source saw it: probe, server (a SLOWLOG entry), tap, load
	Conn         string // connection it ran on: for the probe "kept" or "fresh", for the tap the client's address
	Op           string // command name, upper case
	KeyHash      string // keyed hash of the first key, or empty
	ArgCount     int
	RequestBytes int64
	ReplyBytes   int64
	IntendedNs   int64 // when it was due
	StartNs      int64 // when it was sent
	EndNs        int64 // when the caller had the reply
	Node         string
	Slot         int // cluster slot, -1 where unknown
	Error        string
	Side         string // tap: from which end of the connection it was seen: server, client, both; empty elsewhere
	Client       string // tap: the calling process on this host, "redis-cli[1234]"; empty where unknown
	// tap: TCP sequence number of the byte after the request, the same at both ends; 0 where unknown
	Seq uint32
}

// Segment is a part of a call's time that a source measured: an actor in a state during [FromNs, ToNs).
type Segment struct {
	CallID  int64
	Actor   string
	State   string
	FromNs  int64
	ToNs    int64
	Culprit string
}

// Histogram holds all latencies of one second on one path: HDR is a compressed HdrHistogram (V2 encoding) of
// nanoseconds.
type Histogram struct {
	Second int64
	Source string
	Node   string
	Op     string
	HDR    []byte
}

// Sample is a number read at a time: an INFO field, a counter of cpu.stat, a field of TCP_INFO.
type Sample struct {
	TimeNs  int64
	Source  string
	Subject string
	Name    string
	Value   float64
}

// Event is something with a begin and a duration: a throttled period, a SLOWLOG entry, a fork, a connect. Detail is
// JSON.
type Event struct {
	TimeNs     int64 // begin
	DurationNs int64
	Source     string
	Subject    string
	Kind       string
	Detail     string
}

// Snapshot is a text read at a time: CONFIG GET, CLIENT LIST without names of keys, CLUSTER NODES.
type Snapshot struct {
	TimeNs  int64
	Source  string
	Subject string
	Name    string
	Body    string
}

// Profile is a pprof profile taken during the watch.
type Profile struct {
	TimeNs  int64
	Subject string
	Kind    string
	Pprof   []byte
}

// Sink receives rows from the sources. Its methods never block and are safe for concurrent use; a sink that cannot keep
// up drops rows and counts them (MetaDropped).
type Sink interface {
	Call(Call, ...Segment)
	Histogram(Histogram)
	Sample(Sample)
	ConnUse(client string, u ConnUse)
	Event(Event)
	Snapshot(Snapshot)
	SetMeta(key, value string)
}

// ProfileSink is a Sink that receives profiles, too.
type ProfileSink interface {
	Sink
	Profile(Profile)
}

// PIDOf reads the process number of Call.Client, "redis-cli[1234]".
func PIDOf(process string) (pid int, ok bool) {
	i := strings.LastIndexByte(process, '[')
	if i < 0 || !strings.HasSuffix(process, "]") {
		return 0, false
	}
	pid, err := strconv.Atoi(process[i+1 : len(process)-1])
	return pid, err == nil
}
