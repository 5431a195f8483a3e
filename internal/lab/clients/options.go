package clients

import "time"

// Options is what a client program reads from its standard input, as one line of JSON. Zero values are what the library does by
// default, except where said. A program ignores what its library does not have.
//
// This file is also a part of the Go programs (see source.go), so that both sides mean the same.
type Options struct {
	Address  string `json:"address"` // HOST:PORT
	Password string `json:"password,omitempty"`
	Name     string `json:"name,omitempty"` // CLIENT SETNAME
	DB       int    `json:"db,omitempty"`   // SELECT

	Commands []Command `json:"commands"`
	Keys     int       `json:"keys,omitempty"`            // "{n}" in an argument is a random number below this
	Workers  int       `json:"workers"`                   // callers side by side; each waits for its reply before its next call
	Rate     float64   `json:"rate_per_second,omitempty"` // calls of all workers; 0: each calls again as soon as it can
	Burst    int       `json:"burst,omitempty"`           // pyasync: calls that a worker makes at once, each on a connection of its own
	Random   bool      `json:"random,omitempty"`          // exponential gaps (Poisson arrivals) and not even ones

	PoolSize       int           `json:"pool_size,omitempty"`        // connections at most; redigo: MaxActive
	MaxIdle        int           `json:"max_idle,omitempty"`         // idle connections that are kept; redigo only, where 0 keeps none
	IdleLimit      time.Duration `json:"idle_limit_ns,omitempty"`    // age at which an idle connection is not used again
	ReadTimeout    time.Duration `json:"read_timeout_ns,omitempty"`  // for a reply
	TestOnBorrow   bool          `json:"test_on_borrow,omitempty"`   // redigo: PING before each use of a pooled connection
	CallsPerClient int           `json:"calls_per_client,omitempty"` // goredis9: after so many calls a worker makes itself a new client
	DecodesPerCall int           `json:"decodes_per_call,omitempty"` // Go: how often a reply, a JSON document, is decoded and encoded
	Procs          int           `json:"procs,omitempty"`            // Go: GOMAXPROCS
	BlockEvery     time.Duration `json:"block_every_ns,omitempty"`   // pyasync: a coroutine computes on the loop, again after this,
	BlockFor       time.Duration `json:"block_for_ns,omitempty"`     // for half to one and a half of this
	HeapObjects    int           `json:"heap_objects,omitempty"`     // pyasync: containers in a cache, which the garbage collector walks
	HeapPerCall    int           `json:"heap_per_call,omitempty"`    // of those, how many each reply replaces
}

// Command is one kind of call.
type Command struct {
	Args   []string `json:"args"`
	Weight int      `json:"weight,omitempty"` // how often it comes compared with the others; 0 counts as 1
}

// Summary is what a program prints at its end, as one line of JSON: the client's own view of its calls. A call counts from when the
// library was called to its return, with all waiting for a connection, dialling and retrying in between.
type Summary struct {
	Calls     int64         `json:"calls"`
	Errors    int64         `json:"errors"`
	LastError string        `json:"last_error,omitempty"`
	P50       time.Duration `json:"p50_ns"`
	P99       time.Duration `json:"p99_ns"`
	Max       time.Duration `json:"max_ns"`
	Ran       time.Duration `json:"ran_ns"`
	CPU       time.Duration `json:"cpu_ns"`                 // of the whole process, user and system
	Dials     int64         `json:"dials"`                  // connections that were opened
	PoolWaits int64         `json:"pool_waits,omitempty"`   // calls that the library says waited for a connection
	PoolWait  time.Duration `json:"pool_wait_ns,omitempty"` // how long, in all
	GCs       int64         `json:"gcs,omitempty"`          // pyasync: full collections,
	GCTime    time.Duration `json:"gc_ns,omitempty"`        // their time in all,
	GCMax     time.Duration `json:"gc_max_ns,omitempty"`    // and of the longest
}
