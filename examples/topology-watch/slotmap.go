package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// The channels of `slowpath topology watch --publish`: "slot host:port" and "ranges host:port", ranges such as
// 0-99,200.
const (
	movedChannel    = "__cluster__:moved"
	failoverChannel = "__cluster__:failover"
	slotCount       = 16384
)

// slotMap has the owner of each slot: read once, then updated by messages.
type slotMap struct {
	seed           string
	mu             sync.Mutex
	owners         [slotCount]string
	reads, changes atomic.Int64
}

func newSlotMap(seed string) *slotMap { return &slotMap{seed: seed} }

// read asks a server for the whole map: at the start, and when messages may have been missed. If the seed does not
// answer, it asks the known nodes.
func (m *slotMap) read(ctx context.Context) error {
	var last error
	for _, addr := range m.nodes() {
		c := redis.NewClient(&redis.Options{Addr: addr})
		ranges, err := c.ClusterSlots(ctx).Result()
		c.Close()
		if last = err; err != nil {
			continue
		}
		m.reads.Add(1)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.owners = [slotCount]string{}
		for _, r := range ranges {
			if len(r.Nodes) == 0 {
				continue
			}
			// An empty host stands for the host that replied.
			if host, port, err := net.SplitHostPort(r.Nodes[0].Addr); err == nil && host == "" {
				asked, _, _ := net.SplitHostPort(addr)
				r.Nodes[0].Addr = net.JoinHostPort(asked, port)
			}
			for slot := r.Start; slot <= r.End && slot < slotCount; slot++ {
				m.owners[slot] = r.Nodes[0].Addr
			}
		}
		return nil
	}
	return last
}

// nodes lists the addresses to ask, the seed first.
func (m *slotMap) nodes() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	list, seen := []string{m.seed}, map[string]bool{"": true, m.seed: true}
	for _, owner := range m.owners {
		if !seen[owner] {
			seen[owner] = true
			list = append(list, owner)
		}
	}
	return list
}

// slots gives the map to the client, from memory.
func (m *slotMap) slots(context.Context) ([]redis.ClusterSlot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []redis.ClusterSlot
	for slot, owner := range m.owners {
		last := len(out) - 1
		switch {
		case owner == "":
		case last >= 0 && out[last].End == slot-1 && out[last].Nodes[0].Addr == owner:
			out[last].End = slot
		default:
			out = append(out, redis.ClusterSlot{Start: slot, End: slot, Nodes: []redis.ClusterNode{{Addr: owner}}})
		}
	}
	return out, nil
}

// follow applies messages until ctx ends. When the connection is lost, go-redis subscribes again on another node and
// sends a Subscription: then the map is read once, since messages may have been missed.
func (m *slotMap) follow(ctx context.Context, client *redis.ClusterClient) {
	subscription := client.Subscribe(ctx, movedChannel, failoverChannel)
	defer subscription.Close()
	messages := subscription.ChannelWithSubscriptions()
	for subscribed := false; ; {
		select {
		case <-ctx.Done():
			return
		case message := <-messages:
			switch message := message.(type) {
			case *redis.Subscription:
				if subscribed && message.Channel == movedChannel {
					if err := m.read(ctx); err != nil {
						log.Printf("reading the map again: %v", err)
					}
				}
				subscribed = true
			case *redis.Message:
				if err := m.apply(message.Payload); err != nil {
					log.Printf("%s: %v", message.Channel, err)
					continue
				}
			}
			client.ReloadState(ctx) // from memory: m.slots
		}
	}
}

// apply applies a message of either channel: a slot, or ranges of slots, and the new owner.
func (m *slotMap) apply(payload string) error {
	ranges, owner, ok := strings.Cut(payload, " ")
	if !ok || owner == "" {
		return fmt.Errorf("not a message of slowpath topology watch: %q", payload)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range strings.SplitSeq(ranges, ",") {
		from, to, isRange := strings.Cut(r, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || first < 0 || last < first || last >= slotCount {
			return fmt.Errorf("not a range of slots: %q", r)
		}
		for slot := first; slot <= last; slot++ {
			m.owners[slot] = owner
		}
	}
	m.changes.Add(1)
	return nil
}
