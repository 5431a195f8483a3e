package scenario

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/wire/resp"
)

// resharding moves slots of a cluster as redis-cli --cluster reshard does, over one connection to each node.
type resharding struct {
	nodes []*fleet.Instance
	ids   []string
	conns []net.Conn
	in    []*resp.Reader
}

// reshardingTimeout is for one command; MIGRATE of a big value takes long.
const reshardingTimeout = 20 * time.Second

// resharding connects to all nodes.
func (l *Lab) resharding(ctx context.Context, c *fleet.Cluster) (*resharding, error) {
	r := &resharding{nodes: c.Nodes}
	for i, n := range c.Nodes {
		conn, err := (&net.Dialer{Timeout: reshardingTimeout}).DialContext(ctx, "tcp", n.Addr)
		if err != nil {
			return nil, err
		}
		l.Defer(func(context.Context) error { return conn.Close() })
		r.conns, r.in = append(r.conns, conn), append(r.in, resp.NewReader(conn, resp.DefaultLimits))
		id, err := r.call(i, "CLUSTER", "MYID")
		if err != nil {
			return nil, err
		}
		r.ids = append(r.ids, id)
	}
	return r, nil
}

// call sends one command to a node and waits for its reply.
func (r *resharding) call(node int, args ...string) (string, error) {
	replies, err := r.pipeline(node, args)
	if err != nil {
		return "", err
	}
	return replies[0].Text(), nil
}

// pipeline sends commands in one write. An error reply is an error.
func (r *resharding) pipeline(node int, cmds ...[]string) ([]resp.Value, error) {
	if err := r.conns[node].SetDeadline(time.Now().Add(reshardingTimeout)); err != nil {
		return nil, err
	}
	var wire []byte
	for _, c := range cmds {
		wire = resp.AppendCommand(wire, c...)
	}
	if _, err := r.conns[node].Write(wire); err != nil {
		return nil, err
	}
	var replies []resp.Value
	for _, c := range cmds {
		v, err := r.in[node].Read()
		if err == nil {
			err = v.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", strings.Join(c[:min(2, len(c))], " "), r.nodes[node].Addr, err)
		}
		replies = append(replies, v)
	}
	return replies, nil
}

// open begins the migration of a slot: the new owner first, as the cluster specification says.
func (r *resharding) open(slot, from, to int) error {
	if _, err := r.call(to, "CLUSTER", "SETSLOT", itoa(slot), "IMPORTING", r.ids[from]); err != nil {
		return err
	}
	_, err := r.call(from, "CLUSTER", "SETSLOT", itoa(slot), "MIGRATING", r.ids[to])
	return err
}

// migrate moves keys of an open slot.
func (r *resharding) migrate(from, to int, keys ...string) error {
	host, port, err := net.SplitHostPort(r.nodes[to].Addr)
	if err != nil {
		return err
	}
	_, err = r.call(from, append([]string{"MIGRATE", host, port, "", "0", "20000", "REPLACE", "KEYS"}, keys...)...)
	return err
}

// assign ends the migration of slots: it tells the new owner to all nodes, to itself first.
func (r *resharding) assign(to int, slots ...int) error {
	order := []int{to}
	for i := range r.nodes {
		if i != to {
			order = append(order, i)
		}
	}
	for _, i := range order {
		var cmds [][]string
		for _, slot := range slots {
			cmds = append(cmds, []string{"CLUSTER", "SETSLOT", itoa(slot), "NODE", r.ids[to]})
		}
		if _, err := r.pipeline(i, cmds...); err != nil {
			return err
		}
	}
	return nil
}

// betweenKeys is the pause after each key of several.
const betweenKeys = time.Millisecond

// moveToOther moves a slot with its keys, one by one, between the first two nodes. The node that has keys now is the
// owner: a migration that was broken off is ended first.
func (r *resharding) moveToOther(slot int, all ...string) error {
	keys, err := r.pipeline(0, []string{"CLUSTER", "COUNTKEYSINSLOT", itoa(slot)})
	if err != nil {
		return err
	}
	from := 1
	if n, _ := keys[0].Integer(); n > 0 {
		from = 0
	}
	to := 1 - from
	if err := r.assign(from, slot); err != nil {
		return err
	}
	if err := r.open(slot, from, to); err != nil {
		return err
	}
	for i, key := range all {
		if i > 0 {
			time.Sleep(betweenKeys)
		}
		if err := r.migrate(from, to, key); err != nil {
			return err
		}
	}
	return r.assign(to, slot)
}
