// Package cost knows what one CLUSTER NODES, SLOTS or SHARDS costs a server, by version and size of the cluster, how
// client libraries refresh the map, and what options to make that cheaper would save. It opens no connection.
package cost

import (
	"strings"
	"time"
)

// Command is a subcommand of CLUSTER that returns the map.
type Command string

// The commands by which clients refresh the map.
const (
	Nodes  Command = "nodes"
	Slots  Command = "slots"
	Shards Command = "shards" // since Redis 7.0
)

// Commands lists them, oldest first.
var Commands = []Command{Nodes, Slots, Shards}

// String is the command as typed.
func (c Command) String() string { return "CLUSTER " + strings.ToUpper(string(c)) }

// Stat is the command's name in commandstats from Redis 7.0.
func (c Command) Stat() string { return "cluster|" + string(c) }

// Measured is what one call of a command took of the main thread, by INFO commandstats: without writing the reply to
// the socket.
type Measured struct {
	Command Command
	PerCall time.Duration
	Calls   int
	Bytes   int  // of one reply
	Alone   bool // no calls of others were counted with them
}
