// Package protocol is how slowpath talks to the lab's client programs: one line of JSON in, one line of JSON out
// (docs/clients.md).
//
// The programs in Go, which are modules of their own, contain it too, so that both sides agree. It therefore imports
// only the standard library.
package protocol

import (
	"errors"
	"fmt"
	"time"
)

// Schema is the version of the protocol, in both directions.
const Schema = "slowpath.client/v1"

// Mode is how the program connects.
type Mode string

// The modes. A program without a mode says so and ends with UnsupportedExit.
const (
	Standalone Mode = "standalone"
	Cluster    Mode = "cluster"
	Ring       Mode = "ring" // go-redis: keys spread over independent servers by the client
)

// Exit codes of programs that failed, after a line on stderr that says more. A program that ends with 0 prints a
// summary.
const (
	UnsupportedExit = 3 // the library cannot do what the options ask for
	ConnectExit     = 4 // the library connects when it is opened, and could not
)

// Options is what a client program reads from its standard input, as one line of JSON. A zero value means the default
// of the library, unless a comment says otherwise. A program ignores what its library does not have; docs/clients.md
// has the table.
//
// Each further line is options from then on: the program opens the library again, and closes the one before when its
// calls have ended. Workers, rate, slices and times stay those of the first line.
type Options struct {
	Schema    string   `json:"schema"`
	Addresses []string `json:"addresses"`      // HOST:PORT; several are seeds of one cluster, or the servers of a ring
	Mode      Mode     `json:"mode,omitempty"` // empty: standalone
	Password  string   `json:"password,omitempty"`
	Name      string   `json:"name,omitempty"` // CLIENT SETNAME
	DB        int      `json:"db,omitempty"`   // SELECT
	TLS       bool     `json:"tls,omitempty"`  // the server's certificate is not verified: it is the lab's own

	Commands []Command `json:"commands"`
	Keys     int       `json:"keys,omitempty"` // "{n}" in an argument is a random number below this
	// concurrent callers; each waits for its reply before its next call
	Workers int `json:"workers,omitempty"`
	// calls of all workers; 0: each calls again as soon as it can
	Rate   float64 `json:"rate_per_second,omitempty"`
	Random bool    `json:"random,omitempty"` // exponential gaps (Poisson arrivals) instead of even ones
	// pyasync: concurrent calls of a worker, each on its own connection
	Burst int `json:"burst,omitempty"`
	// go-redis-v9: a call is a pipeline of this many commands of the mix
	Pipeline int           `json:"pipeline,omitempty"`
	Warmup   time.Duration `json:"warmup_ns,omitempty"`   // calls that begin before this are not counted
	Duration time.Duration `json:"duration_ns,omitempty"` // of the counted time; 0: until standard input ends
	Listen   string        `json:"listen,omitempty"`      // HOST:PORT of the HTTP service; port 0: any free port
	// length of the slices of time of Summary.Slices; 0: none
	Slice time.Duration `json:"slice_ns,omitempty"`
	// an operation is this many calls, one after the other; 0: one. All count in the histogram, the operation in
	// Slices
	Chain int `json:"chain,omitempty"`

	PoolSize int `json:"pool_size,omitempty"` // connections at most, per node; redigo: MaxActive
	MinIdle  int `json:"min_idle,omitempty"`  // idle connections that the pool keeps ready
	// idle connections that the pool keeps at most; redigo, where 0 keeps none, and Jedis
	MaxIdle int `json:"max_idle,omitempty"`
	// Go: the first call comes this long after the library was opened, as that of an instance that is ready only then
	FirstCallAfter time.Duration `json:"first_call_after_ns,omitempty"`
	// after this time an idle connection is not used again
	IdleLimit time.Duration `json:"idle_limit_ns,omitempty"`
	// a connection of this age is not used again
	ConnLifetime time.Duration `json:"conn_lifetime_ns,omitempty"`
	PoolTimeout  time.Duration `json:"pool_timeout_ns,omitempty"` // longest wait for a connection of the pool
	DialTimeout  time.Duration `json:"dial_timeout_ns,omitempty"` // for a new connection
	ReadTimeout  time.Duration `json:"read_timeout_ns,omitempty"` // for a reply
	Retries      int           `json:"retries,omitempty"`         // after a failure; -1: none
	TestOnBorrow bool          `json:"test_on_borrow,omitempty"`  // PING before each use of a pooled connection
	ReadReplicas bool          `json:"read_replicas,omitempty"`   // reads go to random nodes of a shard
	// each worker keeps a connection of its own, and borrows none; standalone
	OwnConnections bool `json:"own_connections,omitempty"`
	// go-redis-v9: a worker makes a new client after this many calls
	CallsPerClient int `json:"calls_per_client,omitempty"`
	// redigo, go-redis-v9: one of this many calls does not return its connection
	LeakEvery int `json:"leak_every,omitempty"`

	// cluster: period of the map refresh
	TopologyRefresh  time.Duration `json:"topology_refresh_ns,omitempty"`
	RefreshSeedsOnly bool          `json:"refresh_seeds_only,omitempty"` // Lettuce: dynamicRefreshSources(false)
	RefreshAdaptive  bool          `json:"refresh_adaptive,omitempty"`   // Lettuce: all adaptive triggers
	// Lettuce, cluster: clients, each with its own map, as in as many processes
	Clients int `json:"clients,omitempty"`

	// Go: how often a reply, a JSON document, is decoded and encoded
	DecodesPerCall int `json:"decodes_per_call,omitempty"`
	Procs          int `json:"procs,omitempty"` // Go: GOMAXPROCS
	// pyasync: a coroutine blocks the event loop again and again after this, redis-py: a thread computes,
	BlockEvery time.Duration `json:"block_every_ns,omitempty"`
	BlockFor   time.Duration `json:"block_for_ns,omitempty"` // for half to one and a half of this
	// pyasync, redis-py: a process of its own does what would block the event loop, or hold the interpreter's lock
	BlockElsewhere bool `json:"block_elsewhere,omitempty"`
	// Go, Java, redis-py: before each operation a worker takes a lock of the process, which another thread takes again
	// and again after this,
	LockEvery time.Duration `json:"lock_every_ns,omitempty"`
	LockFor   time.Duration `json:"lock_for_ns,omitempty"` // and holds for half to one and a half of this
	// pyasync: containers in a cache, which the garbage collector walks
	HeapObjects int `json:"heap_objects,omitempty"`
	HeapPerCall int `json:"heap_per_call,omitempty"` // how many of them each reply replaces
	// pyasync: the first threshold of gc.set_threshold(GCThreshold, 20, 100)
	GCThreshold int `json:"gc_threshold,omitempty"`
}

// Command is one kind of call. For a library that routes to nodes the second argument, if any, is the key.
type Command struct {
	Args   []string `json:"args"`
	Weight int      `json:"weight,omitempty"` // how often it is sent, relative to the others; 0 counts as 1
}

// ErrOptions says that options contradict each other or lack something.
var ErrOptions = errors.New("bad options for a client program")

// Check returns an error, which matches ErrOptions, for options that no program can follow.
func (o Options) Check() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrOptions, fmt.Sprintf(format, args...))
	}
	switch {
	case len(o.Addresses) == 0:
		return wrong("no address")
	case o.Mode != "" && o.Mode != Standalone && o.Mode != Cluster && o.Mode != Ring:
		return wrong("mode %q; known: standalone cluster ring", o.Mode)
	case o.Mode != Cluster && o.Mode != Ring && len(o.Addresses) > 1:
		return wrong("%d addresses for a standalone server; several are for mode cluster or ring", len(o.Addresses))
	case len(o.Commands) == 0:
		return wrong("no command")
	case o.Workers < 0 || o.Rate < 0 || o.Keys < 0 || o.Duration < 0 || o.Warmup < 0 || o.Clients < 0 ||
		o.Pipeline < 0 || o.Slice < 0 || o.Chain < 0:
		return wrong("workers, rate, keys, clients, pipeline, chain, durations and slices are not negative")
	case o.Workers == 0 && o.Listen == "":
		return wrong("neither workers nor an address to listen at: nobody would call")
	case o.OwnConnections && (o.Listen != "" || o.Mode == Cluster || o.Mode == Ring || o.CallsPerClient > 0 ||
		o.Pipeline > 1 || o.LeakEvery > 0):
		return wrong("own_connections is for workers on a standalone server, each call a command of the mix")
	case o.Listen != "" && o.CallsPerClient > 0:
		return wrong("the HTTP service has one client; calls_per_client is for workers")
	}
	for _, c := range o.Commands {
		if len(c.Args) == 0 || c.Args[0] == "" || c.Weight < 0 {
			return wrong("command %q with weight %d", c.Args, c.Weight)
		}
	}
	return nil
}
