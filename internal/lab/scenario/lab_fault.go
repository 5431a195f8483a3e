package scenario

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
)

// Fault is what a scenario breaks, with a strength that can be drawn. It can be switched on and off while callers run:
// what it costs is measured, so that it may also be too weak to hurt anybody.
type Fault struct {
	Name  string // unique; equal to the cause where there is one fault of it
	Cause string
	Also  []string // causes by which the same fault can as well be called
	Needs Needs
	// Calls: it consists of calls, whose own time nobody measures. It can hurt their callers alone.
	Calls bool
	// Distance: every call takes longer by the same time. It is noticed only where calls are late: what makes a path of
	// 3 ms sick where the server of a healthy one is 3 ms away cannot be seen by anybody.
	Distance bool
	// Culprit is the CLIENT SETNAME of who makes its calls; empty: it is nobody's, or no load's.
	Culprit string
	// Trial is how long its trials are at least, and Lasts how long callers still wait when it has been switched off.
	// 0: as of most faults.
	Trial, Lasts time.Duration
	// Draw draws the strength.
	Draw func(r *rand.Rand) Strength
	// Config are lines of redis.conf, besides those of the stage.
	Config func(l *Lab, s Strength) []string
	// Server changes how the server is started, besides its configuration.
	Server func(ctx context.Context, l *Lab, st *Stage, spec *fleet.Spec) error
	// Base is what it needs of the options of the callers, with and without the fault.
	Base func(o *clients.Options, s Strength)
	// Prepare makes what the fault needs, such as data, before the callers start.
	Prepare func(ctx context.Context, l *Lab, st *Stage, s Strength) error
	// On makes the fault, until l ends.
	On func(ctx context.Context, l *Lab, st *Stage, s Strength) error
	// Caller is the fault as other options of the callers. A fault has On or Caller.
	Caller func(o *clients.Options, s Strength)
}

// Needs is what a fault needs.
type Needs struct {
	Topologies []Topology     // nil: any
	Callers    []clients.Name // nil: any. The first caller is one of them
	Servers    []servers.Name // nil: any
	Quota      bool           // the server is in a cgroup that can have a CPU quota
	OneCPU     bool           // the server runs on CPU 0 only, the callers on another one
	Names      bool           // callers find the server by a name server
	Alone      []Alone        // what no other fault may decide on then
	With       string         // the name of a fault without which it can hurt nobody
}

// serversBut are all servers but one, which a fault does nothing to.
func serversBut(one servers.Name) []servers.Name {
	return slices.DeleteFunc(servers.Known(), func(n servers.Name) bool { return n == one })
}

// Alone is what one fault at a time can decide on.
type Alone string

// What that is.
const (
	maxMemory Alone = "maxmemory"
	disk      Alone = "disk" // its speed
)

// Topology is how the callers reach a server.
type Topology string

// The topologies.
const (
	Standalone Topology = "standalone"
	Replicated Topology = "replica"   // with one replica
	Clustered  Topology = "cluster"   // three masters
	Encrypted  Topology = "tls"       // standalone with TLS
	Proxied    Topology = "proxy"     // standalone, behind a proxy that only delays
	Namespaced Topology = "namespace" // standalone, in a network namespace: packets can be lost
	SlowDisk   Topology = "disk"      // standalone, with an append-only file on a disk that can be slow
)

// Topologies are all of them.
var Topologies = []Topology{Standalone, Replicated, Clustered, Encrypted, Proxied, Namespaced, SlowDisk}

// oneServer are the topologies in which keys are at one server.
var oneServer = []Topology{Standalone, Replicated, Encrypted, Proxied, Namespaced}

// Stage is what faults act on.
type Stage struct {
	Server      *fleet.Instance // in a cluster one of the masters
	Cluster     *fleet.Cluster
	TLS         bool
	Quota       *fault.Cgroup // of the server
	ClientQuota *fault.Cgroup // of the first caller
	NetNS       *fault.NetNS
	Disk        *fault.SlowDisk
	Proxy       *fault.Proxy
	Delay       time.Duration // of the proxy without a fault
	Names       *fault.NameServer
	Own         *OwnCallers  // if the first caller is one of them
	silent      string       // address that answers nothing
	log         *logPipe     // of the server
	path        fault.Path   // what the proxy does now
	used        atomic.Int64 // prepared things that are used up
}

// Strength says how strong a fault is. Names end in the unit.
type Strength map[string]float64

// millis is a duration of a strength.
func (s Strength) millis(name string) time.Duration {
	return time.Duration(s[name] * float64(time.Millisecond))
}

// int is a count of a strength.
func (s Strength) int(name string) int { return int(math.Round(s[name])) }

// between draws a number by its logarithm, three of four in the upper half: most faults hurt, and some are too weak. It
// has two digits, so that a strength can be read.
func between(r *rand.Rand, low, high float64) float64 {
	v := low * math.Pow(high/low, max(r.Float64(), r.Float64()))
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return math.Round(math.Round(v/unit)*unit*1e6) / 1e6
}

// preparedFor is how many prepared things a fault may use up in all of a run: it is on for about 20 s.
const preparedFor = 50

// Faults lists the faults that can be drawn.
func Faults() []Fault {
	return slices.Concat(
		[]Fault{serverQuota, busyNeighbours, freezePulses},
		[]Fault{keysCommands, longScripts, flushes, bigFrees, bigReads, bigWrites, exporter, snapshots, syncAlways},
		[]Fault{pauses, idleConnections, segmentLoss, distance},
		[]Fault{
			clientQuota, blockedEventLoop, collectedHeap, smallPool, clientPerCall, clientPerCallFar, handshakes,
			smallIdlePool, idleLimit, slowNameServer, lostRepliesOfProxy, shortTimeout, oneKeyAtATime, bigPipelines,
		},
		[]Fault{waitOnSharedConn, noNoDelay},
		[]Fault{bigMigrations, movingDocuments, hotNode, intersections, writeBlocks, fullMemory, monitors},
		[]Fault{heldLock, heldInterpreter, deadAddress, connectionBursts, narrowBandwidth},
		[]Fault{defragmentation, invalidations, unreadLog, everySecondOnSlowDisk, killedReaders},
		[]Fault{rarely(freezePulses), rarely(pauses), rarely(unreadLog)},
	)
}

// FindFault returns the fault with a name.
func FindFault(name string) (Fault, bool) {
	for _, f := range Faults() {
		if f.Name == name {
			return f, true
		}
	}
	return Fault{}, false
}
