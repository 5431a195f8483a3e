package host

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// ErrNotHere means that no process on this host is at the other end of the connection.
var ErrNotHere = errors.New("no process on this host serves this address")

// ErrGone means that the watched process ended.
var ErrGone = errors.New("the watched process has ended")

// Query describes the process to locate. The fields are tried from the most certain to the least: PeerPID, the
// connection Local-Remote, UnixPath, Listen.
type Query struct {
	Network  string // tcp, tcp4, tcp6 or unix
	Local    string // our end of a connection, "ip:port"
	Remote   string // the server's end of that connection, "ip:port"
	Listen   string // address that the server listens at, "host:port"
	UnixPath string
	PeerPID  int // SO_PEERCRED of a unix socket
	WantPID  int // process_id of INFO, in the server's own PID namespace
}

// Process is a process on this host.
type Process struct {
	PID     int // in the PID namespace of slowpath
	NSPID   int // in its own PID namespace, which is what INFO says
	PPID    int
	UID     int
	Comm    string
	Exe     string
	Args0   string
	NetNS   string // "net:[4026531840]"
	OwnNet  bool   // it has slowpath's network namespace
	Port    int    // local TCP port by which it was found, 0 for unix sockets
	Foreign bool   // its PID is not WantPID: it is a proxy, not the server
}

// IsServer reports whether a process looks like a server that speaks the Redis protocol.
func (p Process) IsServer() bool {
	for _, name := range []string{"redis", "valkey", "keydb", "dragonfly"} {
		if strings.Contains(p.Comm, name) || strings.Contains(filepath.Base(p.Args0), name) {
			return true
		}
	}
	return false
}

const (
	listenEvery = 100 * time.Millisecond // an accept queue is full for a short time only
	// costShare bounds the CPU time of an expensive read: it is repeated after its cost times this, but not later than
	// longestPause or its own period.
	costShare = 1000
)

// Options of a watch. Node is the subject of everything about the server.
type Options struct {
	FS            FS // this host when nil
	Clock         clock.Clock
	Sink          recording.Sink
	Node          string
	Process       Process
	Port          int           // TCP port of the server; Process.Port when 0
	ThreadEvery   time.Duration // period of reading the main thread, 5 ms when 0
	CountersEvery time.Duration // period of reading the counters, 1 s when 0
	ListenEvery   time.Duration // period of reading the accept queue, 100 ms when 0
	// CostShare bounds the CPU time of each expensive read (sockets, neighbours, clients) to one part in so many of a
	// core; 1000 when 0.
	CostShare int64
	Pace      *clock.Pace // of the counters and the expensive reads
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = Root{}
	}
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.ThreadEvery <= 0 {
		o.ThreadEvery = 5 * time.Millisecond
	}
	if o.CountersEvery <= 0 {
		o.CountersEvery = time.Second
	}
	if o.ListenEvery <= 0 {
		o.ListenEvery = listenEvery
	}
	if o.CostShare <= 0 {
		o.CostShare = costShare
	}
	if o.Port == 0 {
		o.Port = o.Process.Port
	}
	return o
}
