// Package cost knows what it costs a server to write the map of its cluster, by version and size, how client libraries
// ask for it, and what each way to ask less would save. It opens no connection: what was seen is given to it.
package cost

import (
	"strings"
	"time"
)

// Command is a subcommand of CLUSTER that writes the map.
type Command string

// The commands by which clients refresh their topology.
const (
	Nodes  Command = "nodes"
	Slots  Command = "slots"
	Shards Command = "shards" // since Redis 7.0
)

// Commands are in the order in which they came to be.
var Commands = []Command{Nodes, Slots, Shards}

// String is the command as one types it.
func (c Command) String() string { return "CLUSTER " + strings.ToUpper(string(c)) }

// Stat is the command's name in commandstats from Redis 7.0 on.
func (c Command) Stat() string { return "cluster|" + string(c) }

// Measured is what one call of a command took of the main thread, by the server's own clock; writing the reply to the
// socket comes on top.
type Measured struct {
	Command Command
	PerCall time.Duration
	Calls   int
	Bytes   int  // of one reply
	Alone   bool // the calls were counted apart from those of others
}
