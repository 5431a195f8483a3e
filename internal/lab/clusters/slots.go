package clusters

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/wire/cluster"
)

// Pace is how slots are moved.
type Pace struct {
	KeysAtOnce int           // keys of one MIGRATE, for which both nodes do nothing else; at least 1
	Pause      time.Duration // after each MIGRATE
	Progress   func(Moved)   // is called after each MIGRATE and each slot; nil: nobody
}

// Moved is what has been moved until now.
type Moved struct {
	Slots, Of int
	Keys      int
	Took      time.Duration
	Stopped   bool // ctx has ended before all were moved
}

// String is how many slots have been moved.
func (m Moved) String() string {
	if m.Slots == m.Of {
		return format.Count(m.Slots, "slot")
	}
	return fmt.Sprintf("%d of %s", m.Slots, format.Count(m.Of, "slot"))
}

// move is a slot and its way.
type move struct {
	slot     uint16
	from, to *node
}

// migrateTimeout bounds one MIGRATE; a big value takes long.
const migrateTimeout = time.Minute

// Reshard moves slots, the lowest first, from one master to another one. The end of ctx ends it after the slot that is
// being moved.
func (c *Cluster) Reshard(ctx context.Context, from, to string, slots int, p Pace) (Moved, error) {
	if err := c.ready(ctx); err != nil {
		return Moved{}, err
	}
	source, err := c.masterNamed(from)
	if err != nil {
		return Moved{}, err
	}
	destination, err := c.masterNamed(to)
	if err != nil {
		return Moved{}, err
	}
	if source == destination {
		return Moved{}, misuse("%s is both where the slots are and where they go; give two masters", source.Addr)
	}
	if err := c.endBrokenMoves(ctx); err != nil {
		return Moved{}, err
	}
	owned := slotsOf(source.self())
	if slots < 1 || slots > len(owned) {
		return Moved{}, misuse("%d slots of %s, which has %d: give 1 to %[3]d", slots, source.Addr, len(owned))
	}
	var moves []move
	for _, s := range owned[:slots] {
		moves = append(moves, move{s, source, destination})
	}
	done, err := c.moveAll(ctx, moves, p)
	if err == nil && source.self().Slots() == 0 {
		c.Note(source.Addr + " has no slots any more: from version 7.0 on it becomes a replica")
	}
	return done, err
}

func slotsOf(n cluster.Node) (slots []uint16) {
	for _, r := range n.Ranges {
		for s := int(r.From); s <= int(r.To); s++ {
			slots = append(slots, uint16(s))
		}
	}
	return slots
}

// moveAll moves one slot after the other, and waits until all nodes know the new owners.
func (c *Cluster) moveAll(ctx context.Context, moves []move, p Pace) (done Moved, err error) {
	begin := time.Now()
	done.Of = len(moves)
	if p.Progress == nil {
		p.Progress = func(Moved) {}
	}
	for _, m := range moves {
		if done.Stopped = ctx.Err() != nil; done.Stopped {
			break
		}
		err := c.moveSlot(ctx, m, p, func(keys int) {
			done.Keys += keys
			done.Took = time.Since(begin)
			p.Progress(done)
		})
		if err != nil {
			return done, fmt.Errorf("moving slot %d from %s to %s: %w; the next lab cluster command that moves slots "+
				"ends this move first", m.slot, m.from.Addr, m.to.Addr, err)
		}
		done.Slots++
		done.Took = time.Since(begin)
		p.Progress(done)
	}
	return done, c.settle(context.WithoutCancel(ctx))
}

// moveSlot moves a slot as redis-cli does, also where that has begun already: the new owner expects it first, then the
// old one sends callers of keys that it no longer has there. The end of ctx ends the pauses only.
func (c *Cluster) moveSlot(ctx context.Context, m move, p Pace, moved func(keys int)) error {
	work := context.WithoutCancel(ctx)
	slot := strconv.Itoa(int(m.slot))
	if _, err := m.to.do(work, "CLUSTER", "SETSLOT", slot, "IMPORTING", m.from.id); err != nil {
		return err
	}
	if _, err := m.from.do(work, "CLUSTER", "SETSLOT", slot, "MIGRATING", m.to.id); err != nil {
		return err
	}
	for {
		keys, err := m.migrate(work, slot, max(p.KeysAtOnce, 1))
		if err != nil {
			return err
		}
		if keys == 0 {
			return c.assign(work, slot, m)
		}
		moved(keys)
		pause(ctx, p.Pause)
	}
}

// migrate moves some keys of an open slot. REPLACE: of a key that a broken MIGRATE has left on both nodes, callers have
// seen that of the old owner.
func (m move) migrate(ctx context.Context, slot string, atOnce int) (keys int, err error) {
	reply, err := m.from.do(ctx, "CLUSTER", "GETKEYSINSLOT", slot, strconv.Itoa(atOnce))
	if err != nil {
		return 0, err
	}
	list, _ := reply.([]any)
	if len(list) == 0 {
		return 0, nil
	}
	host, port, err := net.SplitHostPort(m.to.Addr)
	if err != nil {
		return 0, err
	}
	args := []string{
		"MIGRATE", host, port, "", "0", strconv.FormatInt(migrateTimeout.Milliseconds(), 10), "REPLACE",
	}
	if password := m.to.Password(); password != "" {
		args = append(args, "AUTH", password)
	}
	args = append(args, "KEYS")
	for _, key := range list {
		name, _ := key.(string)
		args = append(args, name)
	}
	return len(list), patiently(ctx, func() error {
		_, err := m.from.conn.Do(ctx, 2*migrateTimeout, args...)
		return err
	})
}

// patiently repeats what a node refuses while it sees too few others, as after a failover.
func patiently(ctx context.Context, do func() error) error {
	end := time.Now().Add(settleTimeout)
	return poll(ctx, func() (bool, error) {
		err := do()
		if fleet.Refused(err, "CLUSTERDOWN") && time.Now().Before(end) {
			return false, nil
		}
		return err == nil, err
	})
}

// assign ends the move of a slot: all masters learn its new owner, that one first. The old owner may have become a
// replica already, as it heard of the loss of its last slot from others.
func (c *Cluster) assign(ctx context.Context, slot string, m move) error {
	tell := []*node{m.to, m.from}
	for _, n := range c.masters() {
		if !slices.Contains(tell, n) {
			tell = append(tell, n)
		}
	}
	for _, n := range tell {
		_, err := n.do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", m.to.id)
		isReplica := fleet.Refused(err, "SETSLOT only with masters") || fleet.Refused(err, "UNBLOCKED")
		if err != nil && (n == m.to || !isReplica) {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	if d > 0 {
		wait := time.NewTimer(d)
		defer wait.Stop()
		select {
		case <-ctx.Done():
		case <-wait.C:
		}
	}
}

// endBrokenMoves ends moves of slots that a killed process has left open, and closes slots that are marked as open
// though they have their new owner.
func (c *Cluster) endBrokenMoves(ctx context.Context) error {
	broken, marked := c.openSlots()
	for _, m := range broken {
		c.Note(fmt.Sprintf("slot %d was left on its way from %s to %s: it is moved first", m.slot, m.from.Addr,
			m.to.Addr))
		if err := c.moveSlot(ctx, m, Pace{KeysAtOnce: 1}, func(int) {}); err != nil {
			return fmt.Errorf("moving slot %d from %s to %s: %w", m.slot, m.from.Addr, m.to.Addr, err)
		}
	}
	for _, m := range marked {
		if _, err := m.from.do(ctx, "CLUSTER", "SETSLOT", strconv.Itoa(int(m.slot)), "STABLE"); err != nil {
			return err
		}
	}
	if len(broken)+len(marked) > 0 {
		return c.settle(ctx)
	}
	return nil
}

// openSlots gives the slots whose move has begun, and those that are only marked so, at from.
func (c *Cluster) openSlots() (broken, marked []move) {
	seen := map[uint16]bool{}
	note := func(slot uint16, at, from, to *node) {
		switch {
		case from == nil || to == nil || !owns(from, slot):
			marked = append(marked, move{slot: slot, from: at})
		case !seen[slot]:
			seen[slot] = true
			broken = append(broken, move{slot, from, to})
		}
	}
	for _, n := range c.masters() {
		for _, m := range n.self().Migrating {
			note(m.Slot, n, n, c.running(m.NodeID))
		}
		for _, m := range n.self().Importing {
			note(m.Slot, n, c.running(m.NodeID), n)
		}
	}
	return broken, marked
}

func owns(n *node, slot uint16) bool {
	return slices.ContainsFunc(n.self().Ranges, func(r cluster.Range) bool { return r.From <= slot && slot <= r.To })
}

// take chooses slots that a new master gets: always one of the master that has the most, from its end, so that each
// gives one range.
func take(from []*node, to *node, slots int) (moves []move, err error) {
	left := map[*node][]uint16{}
	all := 0
	for _, n := range from {
		left[n] = slotsOf(n.self())
		all += len(left[n])
	}
	if slots < 0 || slots > all-len(from) { // each keeps one
		return nil, misuse("%d slots for a new master, of %d: give 0 to %d", slots, all, max(0, all-len(from)))
	}
	for range slots {
		most := slices.MaxFunc(from, func(a, b *node) int { return len(left[a]) - len(left[b]) })
		own := left[most]
		moves = append(moves, move{own[len(own)-1], most, to})
		left[most] = own[:len(own)-1]
	}
	slices.SortFunc(moves, func(a, b move) int { return int(a.slot) - int(b.slot) }) // range by range
	return moves, nil
}

// give spreads the slots of a master that goes: always to the one that has the fewest.
func give(from *node, to []*node) (moves []move) {
	has := map[*node]int{}
	for _, n := range to {
		has[n] = n.self().Slots()
	}
	gets := map[*node]int{}
	own := slotsOf(from.self())
	for range own {
		least := slices.MinFunc(to, func(a, b *node) int { return has[a] - has[b] })
		has[least]++
		gets[least]++
	}
	for _, n := range to { // in ranges
		for _, s := range own[:gets[n]] {
			moves = append(moves, move{s, from, n})
		}
		own = own[gets[n]:]
	}
	return moves
}
