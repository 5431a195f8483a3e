package survey

import (
	"time"

	"slowpath/internal/source/server"
	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/cluster"
)

// Survey is what the nodes of a cluster said: all that the analysis goes by.
type Survey struct {
	Start  time.Time
	Window time.Duration // in which refreshes were counted; 0 where nobody waited for them
	Looks  []*Look       // the target's first
}

// Look is what one node said. What it refused or could not say is the zero value, and is told in Refused.
type Look struct {
	Addr   string // where it was asked
	ID     string // its own; empty if it did not answer
	Server string // "redis 7.0.15"
	Why    string // why it did not answer; empty if it did

	HasMap bool
	Source cost.Command // the command whose reply the map is
	Map    cluster.Map  // as this node sees it

	HasInfo bool
	Info    cluster.Info
	Fields  server.Fields // INFO, when it was asked first
	Begin   server.Fields // at the beginning of the window
	End     server.Fields // and at its end

	Links    []Link
	HasLinks bool
	Measured []cost.Measured
	Ticks    []Tick
	Slow     []SlowCall

	Refused []Refusal
	Sent    map[string]int // own commands by their name in commandstats
}

// Answered reports whether the node could be asked at all.
func (l *Look) Answered() bool { return l.Why == "" }

// Refusal is a command that a node did not answer.
type Refusal struct{ Command, Why string }

// Tick is one look into the window.
type Tick struct {
	At         time.Time
	Stats      server.Fields   // INFO commandstats
	Clients    []server.Client // without replicas and slowpath's own
	HasClients bool
}

// Link is a link of the cluster bus, from CLUSTER LINKS (since Redis 7.0).
type Link struct {
	NodeID          string
	Outgoing        bool
	CreatedAt       time.Time
	BufferBytes     int64 // allocated for what is to be sent
	BufferUsedBytes int64 // of it, what waits now
}

// SlowCall is an entry of SLOWLOG that is a refresh of somebody's topology.
type SlowCall struct {
	At      time.Time
	Took    time.Duration
	Command string // "cluster|nodes"
	Addr    string // of the client
	Name    string // that it has given itself
}

// fails notes a refused command.
func (l *Look) fails(command, why string) { l.Refused = append(l.Refused, Refusal{command, why}) }

// refused reports whether the command was refused.
func (l *Look) refused(command string) bool {
	for _, r := range l.Refused {
		if r.Command == command {
			return true
		}
	}
	return false
}

// isMaster reports what the node says of itself.
func (l *Look) isMaster() bool {
	if role := l.Fields.Text["role"]; role != "" {
		return role == "master"
	}
	n, ok := l.Map.Node(l.ID)
	return ok && n.Primary
}
