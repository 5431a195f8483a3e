package survey

import (
	"time"

	"slowpath/internal/source/server"
	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/target"
)

// Survey is what the nodes of a cluster replied: the only input of the analysis.
type Survey struct {
	Start  time.Time
	Window time.Duration // in which refreshes were counted; 0 if they were not
	Nodes  []*NodeState  // the target's first

	target target.Target // who asked
}

// NodeState is what one node replied. What it refused is the zero value, and is listed in Refused.
type NodeState struct {
	Addr   string // under which it was queried
	ID     string // its own; empty if it did not answer
	Server string // "redis 7.0.15"
	Why    string // why it did not answer; empty if it did
	// Withheld: it was not asked, since the password would be sent to a place that only another node names
	Withheld bool

	HasMap bool
	Source cost.Command // the command that gave the map
	Map    cluster.Map  // as this node sees it

	HasInfo    bool
	Info       cluster.Info
	InfoFields server.Fields // the first INFO
	Begin      server.Fields // INFO at the beginning of the window
	End        server.Fields // and at its end

	Links     []Link
	HasLinks  bool
	Measured  []cost.Measured
	Ticks     []Tick
	SlowCalls []SlowCall

	Refused []Refusal
	Sent    map[string]int // own commands by their name in commandstats
}

// Answered reports whether the node answered at all.
func (s *NodeState) Answered() bool { return s.Why == "" }

// Refusal is a command to which a node replied with an error.
type Refusal struct{ Command, Why string }

// Tick is one sample within the window.
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
	BufferBytes     int64 // allocated send buffer
	BufferUsedBytes int64 // of it, in use
}

// SlowCall is an entry of SLOWLOG that is a map refresh.
type SlowCall struct {
	At      time.Time
	Took    time.Duration
	Command string // "cluster|nodes"
	Addr    string // of the client
	Name    string // of the client, set by CLIENT SETNAME
}

// addRefusal notes a refused command.
func (s *NodeState) addRefusal(command, why string) {
	s.Refused = append(s.Refused, Refusal{command, why})
}

// refused reports whether the command was refused.
func (s *NodeState) refused(command string) bool {
	for _, r := range s.Refused {
		if r.Command == command {
			return true
		}
	}
	return false
}

// isMaster reports the node's own role.
func (s *NodeState) isMaster() bool {
	if role := s.InfoFields.Text["role"]; role != "" {
		return role == "master"
	}
	n, ok := s.Map.Node(s.ID)
	return ok && n.Primary
}
