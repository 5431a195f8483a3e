package survey

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"slowpath/internal/source/server"
	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// clientName is slowpath's name in CLIENT LIST.
const clientName = "slowpath-topology"

// node is a connection to one node, and what it replied.
type node struct {
	target      target.Target
	timeout     time.Duration // for connecting
	callTimeout time.Duration // for a reply
	session     *session.Session
	state       *NodeState
	unsupported map[string]bool // commands that a server of the same version has refused
	clientLists int             // how many CLIENT LIST to send within the window
}

// skipUnsupported leaves out commands that another node of the same version does not know.
func (n *node) skipUnsupported(other *node) {
	n.unsupported = map[string]bool{}
	for _, r := range other.state.Refused {
		if strings.Contains(r.Why, "ERR") {
			n.unsupported[other.state.Server+" "+r.Command] = true
		}
	}
}

func (n *node) close() {
	if n.session != nil {
		n.session.Close()
	}
}

// open connects and sends INFO, once for the standard sections and once for commandstats.
func (n *node) open(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	s, _, err := session.Open(bounded, n.target, clientName)
	if err != nil {
		n.state.Why = err.Error()
		return err
	}
	n.session = s
	n.state.Sent["client|setname"]++
	replies, err := n.send(ctx, []string{"INFO"}, []string{"INFO", "commandstats"})
	if err != nil {
		return err
	}
	text := ""
	for i, name := range []string{"INFO", "INFO commandstats"} {
		if err := replies[i].Err(); err != nil {
			n.state.addRefusal(name, err.Error())
			continue
		}
		text += replies[i].Text() + "\r\n"
	}
	n.state.InfoFields = server.ParseInfo(text)
	n.state.Server = n.state.InfoFields.Product()
	return nil
}

// send sends a pipeline. An error is one of the connection, and makes the node one that did not answer.
func (n *node) send(ctx context.Context, cmds ...[]string) ([]resp.Value, error) {
	if n.session == nil {
		return nil, errors.New("not connected")
	}
	bounded, cancel := context.WithTimeout(ctx, n.callTimeout)
	defer cancel()
	for _, args := range cmds {
		n.state.Sent[sentName(args)]++
	}
	replies, err := n.session.Pipeline(bounded, cmds)
	if err != nil && ctx.Err() == nil {
		n.state.Why = err.Error()
	}
	return replies, err
}

// sentName is a command's name in commandstats.
func sentName(args []string) string {
	name := strings.ToLower(args[0])
	if name != "info" && len(args) > 1 {
		name += "|" + strings.ToLower(args[1])
	}
	return name
}

// do sends one command, and notes an error reply.
func (n *node) do(ctx context.Context, args ...string) (resp.Value, bool) {
	name := strings.Join(args[:min(2, len(args))], " ")
	if n.unsupported[n.state.Server+" "+name] {
		return resp.Value{}, false
	}
	replies, err := n.send(ctx, args)
	if err != nil {
		return resp.Value{}, false
	}
	if err := replies[0].Err(); err != nil {
		n.state.addRefusal(name, err.Error())
		return resp.Value{}, false
	}
	return replies[0], true
}

// queryMap sends CLUSTER NODES, or CLUSTER SLOTS if that is refused. host is that of nodes whose line has none.
func (n *node) queryMap(ctx context.Context, host string) {
	if reply, ok := n.do(ctx, "CLUSTER", "NODES"); ok {
		n.setMap(cost.Nodes, host)(cluster.ParseNodes(reply.Text()))
	}
	if n.state.HasMap || !n.state.refused("CLUSTER NODES") {
		return
	}
	if reply, ok := n.do(ctx, "CLUSTER", "SLOTS"); ok {
		n.setMap(cost.Slots, host)(cluster.ParseSlots(reply))
	}
}

func (n *node) setMap(c cost.Command, host string) func(cluster.Map, error) {
	return func(m cluster.Map, err error) {
		if err != nil {
			n.state.addRefusal(c.String(), err.Error())
			return
		}
		if n.target.Host != "" {
			host = n.target.Host
		}
		m.FillHosts(host)
		n.state.HasMap, n.state.Map, n.state.Source = true, m, c
		if me, ok := m.Myself(); ok {
			n.state.ID = me.ID
			return
		}
		for _, other := range m.Nodes { // CLUSTER SLOTS does not mark the replying node
			if addr := other.Addr(); addr != "" && (addr == n.state.Addr || addr == n.session.RemoteAddr()) {
				n.state.ID = other.ID
			}
		}
	}
}

func (n *node) queryInfo(ctx context.Context) {
	reply, ok := n.do(ctx, "CLUSTER", "INFO")
	if !ok {
		return
	}
	info, err := cluster.ParseInfo(reply.Text())
	if err != nil {
		n.state.addRefusal("CLUSTER INFO", err.Error())
		return
	}
	n.state.Info, n.state.HasInfo = info, true
}

func (n *node) queryLinks(ctx context.Context) {
	reply, ok := n.do(ctx, "CLUSTER", "LINKS")
	if !ok {
		return
	}
	links, err := parseLinks(reply)
	if err != nil {
		n.state.addRefusal("CLUSTER LINKS", err.Error())
		return
	}
	n.state.Links, n.state.HasLinks = links, true
}

// batches of a measurement.
const batches = 5

// measure measures a command.
func (n *node) measure(ctx context.Context, c cost.Command) {
	bounded, cancel := context.WithTimeout(ctx, 2*n.callTimeout)
	defer cancel()
	m, err := measureLowest(bounded, n.session, c, batches)
	if err != nil {
		if ctx.Err() == nil {
			n.state.addRefusal(c.String(), err.Error())
		}
		return
	}
	n.state.Sent["info"] += 2 * (batches + 1)
	n.state.Sent[c.Stat()] += m.Calls
	n.state.Measured = append(n.state.Measured, m)
}

// noMap says why a target that answers returns no map.
func (n *node) noMap() error {
	for _, r := range n.state.Refused {
		if strings.HasPrefix(r.Command, "CLUSTER") {
			if strings.Contains(r.Why, "cluster support disabled") {
				return fmt.Errorf("%w: %s is in no cluster (cluster-enabled no); for a single server: slowpath "+
					"doctor %s",
					ErrNotCluster, n.target.Addr(), n.target.Addr())
			}
			fix := "ask another node of the cluster"
			switch {
			case strings.Contains(r.Why, cluster.ErrMalformed.Error()):
				fix = "is this a node of a cluster? Check the host and the port"
			case strings.Contains(r.Why, "NOPERM"):
				fix = "allow it: " + n.target.Grant("+cluster|nodes +cluster|info") + " (before Redis 7: +cluster)"
			}
			return fmt.Errorf("%w from %s: %s: %s; %s", ErrNoMap, n.target.Addr(), r.Command, r.Why, fix)
		}
	}
	return fmt.Errorf("%w from %s: %s", ErrNoMap, n.target.Addr(), n.state.Why)
}
