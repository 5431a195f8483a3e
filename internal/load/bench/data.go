package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"slowpath/internal/load/workload"
	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// Workload is what Data needs to know about the requests of a load: a workload.Workload or a workload.Replay.
type Workload interface {
	Setup() [][]string // sent once to each node before the load
	Writes() bool      // the load may leave keys
	RunsScripts() bool // that somebody else wrote
	CleanupByScan(context.Context, workload.Node) (removed int64, err error)
	CleanupByKeys(context.Context, workload.Node) (removed int64, err error)
}

// Data is the keys of a load in the server: those before it, and those that it leaves.
type Data struct {
	workload Workload
	target   target.Target
	conns    []*DataConn
	owner    func(slot int) *DataConn
}

// OpenData connects to the server, or to each master of its cluster.
func OpenData(ctx context.Context, t target.Target, clustered bool, w Workload) (*Data, error) {
	first, err := OpenDataConn(ctx, t)
	if err != nil {
		return nil, err
	}
	d := &Data{workload: w, target: t, conns: []*DataConn{first}, owner: func(int) *DataConn { return first }}
	if !clustered {
		return d, nil
	}
	if err := d.openMasters(ctx, t); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// openMasters replaces the first connection by one to each node with slots.
func (d *Data) openMasters(ctx context.Context, t target.Target) error {
	v, err := d.conns[0].do(ctx, "CLUSTER", "NODES")
	if err != nil {
		return err
	}
	m, err := cluster.ParseNodes(v.Text())
	if err != nil {
		return fmt.Errorf("%s: %w", t.Addr(), err)
	}
	m.FillHosts(t.Host)
	var owners [cluster.SlotCount]*DataConn
	var masters []*DataConn
	for _, n := range m.Serving() {
		h, err := OpenDataConn(ctx, t.WithAddr(n.Addr()))
		if err != nil {
			return err
		}
		masters = append(masters, h)
		for _, r := range n.Ranges {
			for s := r.From; s <= r.To; s++ {
				owners[s] = h
			}
		}
	}
	if len(masters) == 0 {
		return fmt.Errorf("%s: %w with slots and an address", t.Addr(), cluster.ErrNoNodes)
	}
	d.conns[0].Close()
	d.conns = masters
	d.owner = func(slot int) *DataConn {
		if slot < 0 || owners[slot] == nil {
			return masters[0]
		}
		return owners[slot]
	}
	return nil
}

// Close closes the connections.
func (d *Data) Close() {
	for _, h := range d.conns {
		h.Close()
	}
}

// Addrs are the addresses of the nodes that it was connected to.
func (d *Data) Addrs() (list []string) {
	for _, h := range d.conns {
		list = append(list, h.addr)
	}
	return list
}

// randomKeys is how many keys are sampled to tell whether a server has keys of others.
const randomKeys = 16

// ForeignKeys is the number of keys of the nodes that have keys of others in a sample. It is 0 where the server does
// not say.
func (d *Data) ForeignKeys(ctx context.Context) (keys int64, err error) {
	for _, h := range d.conns {
		questions := [][]string{{"DBSIZE"}}
		for range randomKeys {
			questions = append(questions, []string{"RANDOMKEY"})
		}
		vs, err := h.Pipeline(ctx, questions)
		if err != nil {
			return 0, err
		}
		foreign := false
		for _, v := range vs[1:] {
			foreign = foreign || v.Err() == nil && !v.IsNull() && !strings.HasPrefix(v.Text(), workload.Prefix)
		}
		if foreign && vs[0].Err() == nil {
			keys += vs[0].Int
		}
	}
	return keys, nil
}

// Empty reports whether the server, or each master of its cluster, says that it holds no key in any database. It is
// false where the server does not say, as some proxies do not.
func (d *Data) Empty(ctx context.Context) (bool, error) {
	for _, h := range d.conns {
		vs, err := h.Pipeline(ctx, [][]string{{"INFO", "keyspace"}})
		if err != nil {
			return false, err
		}
		// a database with keys has a line after the head: db0:keys=1,expires=0,avg_ttl=0
		if vs[0].Err() != nil || strings.TrimSpace(vs[0].Text()) != "# Keyspace" {
			return false, nil
		}
	}
	return true, nil
}

// Setup runs the commands that must run once before the load, such as SCRIPT LOAD.
func (d *Data) Setup(ctx context.Context) error {
	for _, h := range d.conns {
		for _, args := range d.workload.Setup() {
			if _, err := h.do(ctx, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// Limits of what is written before replies are read: it fits into the buffers of the sockets, so that neither side
// waits for the other.
const (
	prefillBytes    = 32 << 10
	prefillRequests = 256
)

// batch is requests for one node that have not been sent.
type batch struct {
	requests []byte
	replies  int
}

// Prefill writes every key of a workload's range; progress is called with the number of keys written.
func (d *Data) Prefill(ctx context.Context, w *workload.Workload, seed uint64, progress func(written,
	of uint64),
) (written uint64, err error) {
	p := w.Prefill()
	batches := map[*DataConn]*batch{}
	for _, h := range d.conns {
		batches[h] = &batch{}
	}
	stream := p.Stream(seed, 0, 1)
	for {
		b, r, ok := stream.Next(nil)
		if !ok {
			break
		}
		h := d.owner(int(r.Slot))
		q := batches[h]
		q.requests, q.replies = append(q.requests, b...), q.replies+int(r.Replies)
		written++
		if len(q.requests) >= prefillBytes || q.replies >= prefillRequests {
			if err := q.send(ctx, h); err != nil {
				return written, err
			}
			progress(written, p.Requests())
		}
	}
	for h, q := range batches {
		if err := q.send(ctx, h); err != nil {
			return written, err
		}
	}
	return written, nil
}

func (q *batch) send(ctx context.Context, h *DataConn) error {
	vs, err := h.exchange(ctx, q.requests, q.replies)
	if err != nil {
		return fmt.Errorf("prefill: %w", err)
	}
	for _, v := range vs {
		var reply *resp.ServerError
		if errors.As(v.Err(), &reply) {
			return fmt.Errorf("prefill: %s: %w", h.addr, reply)
		}
	}
	q.requests, q.replies = q.requests[:0], 0
	return nil
}

// WritesKeys: the load writes keys.
func (d *Data) WritesKeys() bool { return d.workload.Writes() }

// withoutScan: a proxy does not know SCAN. It refuses it, or closes the connection as twemproxy does.
func withoutScan(err error) bool {
	var refused *resp.ServerError
	return errors.As(err, &refused) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// cleanByKeys removes the keys one by one, on a new connection.
func (d *Data) cleanByKeys(ctx context.Context) (removed int64, err error) {
	h, err := OpenDataConn(ctx, d.target)
	if err != nil {
		return 0, err
	}
	defer h.Close()
	return d.workload.CleanupByKeys(ctx, h)
}

// Clean removes the keys of the load, and counts them. The error is workload.ErrNotAll if keys remain.
func (d *Data) Clean(ctx context.Context) (removed int64, err error) {
	for _, h := range d.conns {
		n, err := d.workload.CleanupByScan(ctx, h)
		if len(d.conns) == 1 && withoutScan(err) {
			n, err = d.cleanByKeys(ctx)
		}
		removed += n
		if err != nil {
			return removed, fmt.Errorf("removing the keys: %w", err)
		}
	}
	return removed, nil
}
