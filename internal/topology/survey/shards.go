package survey

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/stats"
	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/cluster"
)

// maxShownRanges of a shard are listed.
const maxShownRanges = 8

// shards lists the masters of the common map with their replicas, by their first slot.
func (v *views) shards(s *Survey) []Shard {
	looks := map[string]*Look{}
	for _, l := range s.Looks {
		looks[l.ID] = l
	}
	out := []Shard{}
	m := v.reference().Map
	for _, n := range m.Nodes {
		if !n.Primary || n.HasFlag("handshake") {
			continue
		}
		ranges := texts(n.Ranges)
		sh := Shard{Slots: n.Slots(), RangesOf: len(ranges), Ranges: append([]string{},
			ranges[:min(len(ranges), maxShownRanges)]...), Epoch: n.Epoch, Replicas: []Member{}}
		sh.Master = v.member(n, looks[n.ID], nil)
		for _, r := range m.Replicas(n.ID) {
			sh.Replicas = append(sh.Replicas, v.member(r, looks[r.ID], looks[n.ID]))
		}
		out = append(out, sh)
	}
	first := func(s Shard) int {
		if len(s.Ranges) == 0 {
			return cluster.SlotCount
		}
		from, _, _ := strings.Cut(s.Ranges[0], "-")
		n, _ := strconv.Atoi(from)
		return n
	}
	slices.SortStableFunc(out, func(a, b Shard) int { return cmp.Compare(first(a), first(b)) })
	return out
}

// The states of a node.
const (
	stateOK          = "ok"
	stateFailed      = "failed"
	stateSuspected   = "suspected"
	stateUnreachable = "unreachable"
	stateLoading     = "loading"
	stateSyncing     = "syncing"
	stateLinkDown    = "link-down"
)

// member is a node with what is known of its health: what the others hold of it first, then what it says itself. master
// is the look at a replica's master.
func (v *views) member(n cluster.Node, l, master *Look) Member {
	m := Member{Address: n.Addr(), ID: n.ID, State: stateOK, Flags: append([]string{}, n.Flags...)}
	if m.Address == "" {
		m.Address = v.name(n.ID)
	}
	failed, suspects := v.claimants(n.ID)
	if l != nil {
		m.Server = l.Server
	}
	switch {
	case failed > 0:
		m.State, m.Why = stateFailed, "for "+format.Count(failed, "node")
	case l == nil || !l.Answered():
		m.State = stateUnreachable
		if l != nil {
			m.Why = l.Why
		}
	case suspects > 0:
		m.State, m.Why = stateSuspected, "by "+format.Count(suspects, "node")
	case l.Fields.Numbers["loading"] == 1:
		m.State = stateLoading
	case l.Fields.Numbers["master_sync_in_progress"] == 1:
		m.State = stateSyncing
	case l.Fields.Text["master_link_status"] == "down":
		m.State, m.Why = stateLinkDown, fmt.Sprintf("for %.0f s",
			max(0, l.Fields.Numbers["master_link_down_since_seconds"]))
	}
	if !n.Primary && l != nil && l.Answered() {
		m.lag(n, l, master)
	}
	return m
}

// lag is how far a replica is behind: in bytes by its master's own account, which has both offsets at one moment, and
// in time since it last heard of it.
func (m *Member) lag(n cluster.Node, l, master *Look) {
	if seconds, ok := l.Fields.Numbers["master_last_io_seconds_ago"]; ok && seconds >= 0 {
		ns := int64(seconds * 1e9)
		m.LagNs = &ns
	}
	if master == nil {
		return
	}
	end := master.Fields
	written, ok := end.Numbers["master_repl_offset"]
	for k := 0; ok; k++ {
		key := fmt.Sprintf("slave%d.", k)
		port, known := end.Numbers[key+"port"]
		if !known {
			return
		}
		if int(port) == n.Port && (end.Text[key+"ip"] == n.IP || end.Text[key+"ip"] == n.Host ||
			end.Text[key+"ip"] == n.Hostname) {
			behind := int64(max(0, written-end.Numbers[key+"offset"]))
			m.LagBytes = &behind
			return
		}
	}
}

// summary sums the common map up.
func (v *views) summary() MapSummary {
	ref := v.reference()
	sum := MapSummary{
		Size: cost.SizeOf(ref.Map), Source: ref.Source.String(), HeldBy: v.heldBy, Answered: len(v.looks),
		CurrentEpoch: ref.Info.CurrentEpoch,
	}
	var ranges []int
	for _, n := range ref.Map.Nodes {
		if !n.Primary && n.PrimaryID != "" {
			sum.Replicas++
		}
		if len(n.Ranges) > 0 {
			ranges = append(ranges, len(n.Ranges))
		}
	}
	slices.Sort(ranges)
	if k := len(ranges); k > 0 {
		sum.RangesMin, sum.RangesMedian, sum.RangesMax = ranges[0], stats.MedianUpper(ranges), ranges[k-1]
	}
	sum.SlotsCovered = cluster.SlotCount
	for _, gap := range ref.Map.Uncovered() {
		sum.SlotsCovered -= gap.Len()
	}
	for _, l := range v.looks {
		for _, n := range l.Map.Nodes {
			if l.Source == cost.Nodes && !n.LinkConnected && !n.HasFlag("myself") {
				sum.LinksDown++
			}
		}
		for _, link := range l.Links {
			sum.LinkBufferBytes = max(sum.LinkBufferBytes, link.BufferUsedBytes)
		}
	}
	return sum
}
