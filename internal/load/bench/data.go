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

// Work is what a load sends, as far as its data goes: a Workload or a Replay.
type Work interface {
	Setup() [][]string // sent once to each node before the load
	Writes() bool      // the load may leave keys
	CleanupByScan(context.Context, workload.Node) (removed int64, err error)
	CleanupByKeys(context.Context, workload.Node) (removed int64, err error)
}

// Data is the keys of a load in the server: what is there before, what it leaves.
type Data struct {
	work   Work
	target target.Target
	hands  []*Hand
	owner  func(slot int) *Hand
}

// OpenData connects to the server, or to each master of its cluster.
func OpenData(ctx context.Context, t target.Target, clustered bool, w Work) (*Data, error) {
	first, err := OpenHand(ctx, t)
	if err != nil {
		return nil, err
	}
	d := &Data{work: w, target: t, hands: []*Hand{first}, owner: func(int) *Hand { return first }}
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
	v, err := d.hands[0].do(ctx, "CLUSTER", "NODES")
	if err != nil {
		return err
	}
	m, err := cluster.ParseNodes(v.Text())
	if err != nil {
		return fmt.Errorf("%s: %w", t.Addr(), err)
	}
	m.FillHosts(t.Host)
	var owners [cluster.SlotCount]*Hand
	var masters []*Hand
	for _, n := range m.Nodes {
		if len(n.Ranges) == 0 {
			continue
		}
		h, err := OpenHand(ctx, t.WithAddr(n.Addr()))
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
		return fmt.Errorf("%s: no node of the cluster has slots", t.Addr())
	}
	d.hands[0].Close()
	d.hands = masters
	d.owner = func(slot int) *Hand {
		if slot < 0 || owners[slot] == nil {
			return masters[0]
		}
		return owners[slot]
	}
	return nil
}

// Close closes the connections.
func (d *Data) Close() {
	for _, h := range d.hands {
		h.Close()
	}
}

// randomKeys is how many keys are looked at to tell whether a server has keys of others.
const randomKeys = 16

// Foreign tells how many keys there are, 0 where all that were looked at are of loads. Where the server will not say it
// is 0.
func (d *Data) Foreign(ctx context.Context) (keys int64, err error) {
	for _, h := range d.hands {
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

// Setup runs the commands that must have been run once before the load, such as SCRIPT LOAD.
func (d *Data) Setup(ctx context.Context) error {
	for _, h := range d.hands {
		for _, args := range d.work.Setup() {
			if _, err := h.do(ctx, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// Bounds of what is written before replies are read: the sockets' buffers hold it, so that neither side waits for the
// other.
const (
	prefillBytes    = 32 << 10
	prefillRequests = 256
)

// pipe is requests for one node that have not been sent.
type pipe struct {
	requests []byte
	replies  int
}

// Prefill writes every key of a workload's range; progress is told how many of all are written.
func (d *Data) Prefill(ctx context.Context, w *workload.Workload, seed uint64, progress func(written,
	of uint64),
) (written uint64, err error) {
	p := w.Prefill()
	pipes := map[*Hand]*pipe{}
	for _, h := range d.hands {
		pipes[h] = &pipe{}
	}
	stream := p.Stream(seed, 0, 1)
	for {
		b, r, ok := stream.Next(nil)
		if !ok {
			break
		}
		h := d.owner(int(r.Slot))
		q := pipes[h]
		q.requests, q.replies = append(q.requests, b...), q.replies+int(r.Replies)
		written++
		if len(q.requests) >= prefillBytes || q.replies >= prefillRequests {
			if err := q.send(ctx, h); err != nil {
				return written, err
			}
			progress(written, p.Requests())
		}
	}
	for h, q := range pipes {
		if err := q.send(ctx, h); err != nil {
			return written, err
		}
	}
	return written, nil
}

func (q *pipe) send(ctx context.Context, h *Hand) error {
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

// Leaves tells whether the load writes keys.
func (d *Data) Leaves() bool { return d.work.Writes() }

// withoutScan recognises a proxy that does not know SCAN: it refuses it, or closes the connection as twemproxy does.
func withoutScan(err error) bool {
	var refused *resp.ServerError
	return errors.As(err, &refused) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// cleanByKeys removes the keys one by one, on a new connection.
func (d *Data) cleanByKeys(ctx context.Context) (removed int64, err error) {
	h, err := OpenHand(ctx, d.target)
	if err != nil {
		return 0, err
	}
	defer h.Close()
	return d.work.CleanupByKeys(ctx, h)
}

// Clean removes the keys of the load, and tells how many they were. Keys that remain are workload.ErrNotAll.
func (d *Data) Clean(ctx context.Context) (removed int64, err error) {
	for _, h := range d.hands {
		n, err := d.work.CleanupByScan(ctx, h)
		if len(d.hands) == 1 && withoutScan(err) {
			n, err = d.cleanByKeys(ctx)
		}
		removed += n
		if err != nil {
			return removed, fmt.Errorf("clearing away: %w", err)
		}
	}
	return removed, nil
}
