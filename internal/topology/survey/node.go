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

// clientName is what the nodes see of slowpath in CLIENT LIST.
const clientName = "slowpath-topology"

// node is a connection to one node, and what it said.
type node struct {
	target  target.Target
	timeout time.Duration
	session *session.Session
	look    *Look
	shy     map[string]bool // commands that a server of the same version does not know
	lists   int             // how many CLIENT LIST the window may have
}

// learn spares a node the commands which another one of its version did not know.
func (n *node) learn(other *node) {
	n.shy = map[string]bool{}
	for _, r := range other.look.Refused {
		if strings.Contains(r.Why, "ERR") {
			n.shy[other.look.Server+" "+r.Command] = true
		}
	}
}

func (n *node) close() {
	if n.session != nil {
		n.session.Close()
	}
}

// open connects and asks for INFO, once with the standard sections and once for commandstats.
func (n *node) open(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	s, _, err := session.Open(bounded, n.target, clientName)
	if err != nil {
		n.look.Why = err.Error()
		return err
	}
	n.session = s
	n.look.Sent["client|setname"]++
	replies, err := n.send(ctx, []string{"INFO"}, []string{"INFO", "commandstats"})
	if err != nil {
		return err
	}
	text := ""
	for i, name := range []string{"INFO", "INFO commandstats"} {
		if err := replies[i].Err(); err != nil {
			n.look.fails(name, err.Error())
			continue
		}
		text += replies[i].Text() + "\r\n"
	}
	n.look.Fields = server.ParseInfo(text)
	n.look.Server = n.look.Fields.Product()
	return nil
}

// send sends a pipeline. An error is one of the connection, after which the node has not answered.
func (n *node) send(ctx context.Context, cmds ...[]string) ([]resp.Value, error) {
	if n.session == nil {
		return nil, errors.New("not connected")
	}
	bounded, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	for _, args := range cmds {
		n.look.Sent[sentName(args)]++
	}
	replies, err := n.session.Pipeline(bounded, cmds)
	if err != nil && ctx.Err() == nil {
		n.look.Why = err.Error()
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

// do sends one command; a refusal is noted.
func (n *node) do(ctx context.Context, args ...string) (resp.Value, bool) {
	name := strings.Join(args[:min(2, len(args))], " ")
	if n.shy[n.look.Server+" "+name] {
		return resp.Value{}, false
	}
	replies, err := n.send(ctx, args)
	if err != nil {
		return resp.Value{}, false
	}
	if err := replies[0].Err(); err != nil {
		n.look.fails(name, err.Error())
		return resp.Value{}, false
	}
	return replies[0], true
}

// askMap takes CLUSTER NODES, or what else of the map the node gives. host is where nodes are that do not say where
// they are.
func (n *node) askMap(ctx context.Context, host string) {
	if reply, ok := n.do(ctx, "CLUSTER", "NODES"); ok {
		n.keepMap(cost.Nodes, host)(cluster.ParseNodes(reply.Text()))
	}
	if n.look.HasMap || !n.look.refused("CLUSTER NODES") {
		return
	}
	if reply, ok := n.do(ctx, "CLUSTER", "SLOTS"); ok {
		n.keepMap(cost.Slots, host)(cluster.ParseSlots(reply))
	}
}

func (n *node) keepMap(c cost.Command, host string) func(cluster.Map, error) {
	return func(m cluster.Map, err error) {
		if err != nil {
			n.look.fails(c.String(), err.Error())
			return
		}
		if n.target.Host != "" {
			host = n.target.Host
		}
		m.FillHosts(host)
		n.look.HasMap, n.look.Map, n.look.Source = true, m, c
		if me, ok := myself(m); ok {
			n.look.ID = me.ID
			return
		}
		for _, other := range m.Nodes { // CLUSTER SLOTS does not say who answers
			if addr := other.Addr(); addr != "" && (addr == n.look.Addr || addr == n.session.RemoteAddr()) {
				n.look.ID = other.ID
			}
		}
	}
}

func (n *node) askInfo(ctx context.Context) {
	reply, ok := n.do(ctx, "CLUSTER", "INFO")
	if !ok {
		return
	}
	info, err := cluster.ParseInfo(reply.Text())
	if err != nil {
		n.look.fails("CLUSTER INFO", err.Error())
		return
	}
	n.look.Info, n.look.HasInfo = info, true
}

func (n *node) askLinks(ctx context.Context) {
	reply, ok := n.do(ctx, "CLUSTER", "LINKS")
	if !ok {
		return
	}
	links, err := parseLinks(reply)
	if err != nil {
		n.look.fails("CLUSTER LINKS", err.Error())
		return
	}
	n.look.Links, n.look.HasLinks = links, true
}

// batches of a measurement on a server under watch.
const batches = 5

// measure measures a command.
func (n *node) measure(ctx context.Context, c cost.Command) {
	bounded, cancel := context.WithTimeout(ctx, 2*n.timeout)
	defer cancel()
	m, err := lowest(bounded, n.session, c, batches)
	if err != nil {
		if ctx.Err() == nil {
			n.look.fails(c.String(), err.Error())
		}
		return
	}
	n.look.Sent["info"] += 2 * (batches + 1)
	n.look.Sent[c.Stat()] += m.Calls
	n.look.Measured = append(n.look.Measured, m)
}

// noMap says why a target that answers gives no map.
func (n *node) noMap() error {
	for _, r := range n.look.Refused {
		if strings.HasPrefix(r.Command, "CLUSTER") {
			if strings.Contains(r.Why, "cluster support disabled") {
				return fmt.Errorf("%w: %s is not in one (cluster-enabled no); for a single server: slowpath doctor %s",
					ErrNotCluster, n.target.Addr(), n.target.Addr())
			}
			return fmt.Errorf("%w from %s: %s: %s; let the user have it: ACL SETUSER <user> +cluster|nodes "+
				"+cluster|info (before Redis 7: +cluster)",
				ErrNoMap, n.target.Addr(), r.Command, r.Why)
		}
	}
	return fmt.Errorf("%w from %s: %s", ErrNoMap, n.target.Addr(), n.look.Why)
}
