package incident

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/resp"
)

// admin moves the slots of a cluster as redis-cli --cluster reshard does, over one kept connection per node.
type admin struct {
	nodes []*fleet.Instance
	ids   []string
	conns []net.Conn
	in    []*resp.Reader
}

// adminTimeout is for one command; MIGRATE of a big value takes long.
const adminTimeout = 20 * time.Second

// startCluster runs a cluster of so many masters for the incident.
func (l *Lab) startCluster(ctx context.Context, server servers.Name, masters int, spec fleet.Spec) (*fleet.Cluster,
	error,
) {
	bin, err := l.Cache.Get(ctx, server, l.Log)
	if err != nil {
		return nil, err
	}
	c, err := l.Fleet.StartCluster(ctx, bin, masters, 0, spec)
	if err != nil {
		return nil, err
	}
	l.Defer(c.Stop)
	return c, nil
}

// admin connects to all nodes.
func (l *Lab) admin(ctx context.Context, c *fleet.Cluster) (*admin, error) {
	a := &admin{nodes: c.Nodes}
	for i, n := range c.Nodes {
		conn, err := (&net.Dialer{Timeout: adminTimeout}).DialContext(ctx, "tcp", n.Addr)
		if err != nil {
			return nil, err
		}
		l.Defer(func(context.Context) error { return conn.Close() })
		a.conns, a.in = append(a.conns, conn), append(a.in, resp.NewReader(conn, resp.DefaultLimits))
		id, err := a.ask(i, "CLUSTER", "MYID")
		if err != nil {
			return nil, err
		}
		a.ids = append(a.ids, id)
	}
	return a, nil
}

// ask sends one command to a node and waits for its reply.
func (a *admin) ask(node int, args ...string) (string, error) {
	replies, err := a.pipeline(node, args)
	if err != nil {
		return "", err
	}
	return replies[0].Text(), nil
}

// pipeline sends commands in one write. An error reply is an error.
func (a *admin) pipeline(node int, cmds ...[]string) ([]resp.Value, error) {
	if err := a.conns[node].SetDeadline(time.Now().Add(adminTimeout)); err != nil {
		return nil, err
	}
	var wire []byte
	for _, c := range cmds {
		wire = resp.AppendCommand(wire, c...)
	}
	if _, err := a.conns[node].Write(wire); err != nil {
		return nil, err
	}
	var replies []resp.Value
	for _, c := range cmds {
		v, err := a.in[node].Read()
		if err == nil {
			err = v.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", strings.Join(c[:min(2, len(c))], " "), a.nodes[node].Addr, err)
		}
		replies = append(replies, v)
	}
	return replies, nil
}

// open begins the move of a slot: the taker first, as the specification has it.
func (a *admin) open(slot, from, to int) error {
	if _, err := a.ask(to, "CLUSTER", "SETSLOT", itoa(slot), "IMPORTING", a.ids[from]); err != nil {
		return err
	}
	_, err := a.ask(from, "CLUSTER", "SETSLOT", itoa(slot), "MIGRATING", a.ids[to])
	return err
}

// migrate moves keys whose slot is open.
func (a *admin) migrate(from, to int, keys ...string) error {
	host, port, err := net.SplitHostPort(a.nodes[to].Addr)
	if err != nil {
		return err
	}
	_, err = a.ask(from, append([]string{"MIGRATE", host, port, "", "0", "20000", "REPLACE", "KEYS"}, keys...)...)
	return err
}

// settle ends the move: all nodes hear of the new owner, the taker first.
func (a *admin) settle(to int, slots ...int) error {
	order := []int{to}
	for i := range a.nodes {
		if i != to {
			order = append(order, i)
		}
	}
	for _, i := range order {
		var cmds [][]string
		for _, slot := range slots {
			cmds = append(cmds, []string{"CLUSTER", "SETSLOT", itoa(slot), "NODE", a.ids[to]})
		}
		if _, err := a.pipeline(i, cmds...); err != nil {
			return err
		}
	}
	return nil
}

// moveToOther moves a slot with its only key between the first two nodes. Whoever has the key now is the owner: a move
// that was broken off before is settled first.
func (a *admin) moveToOther(slot int, key string) error {
	keys, err := a.pipeline(0, []string{"CLUSTER", "COUNTKEYSINSLOT", itoa(slot)})
	if err != nil {
		return err
	}
	from := 1
	if n, _ := keys[0].Integer(); n > 0 {
		from = 0
	}
	to := 1 - from
	if err := a.settle(from, slot); err != nil {
		return err
	}
	if err := a.open(slot, from, to); err != nil {
		return err
	}
	if err := a.migrate(from, to, key); err != nil {
		return err
	}
	return a.settle(to, slot)
}
