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

// maxShownRanges is how many ranges of a shard are listed.
const maxShownRanges = 8

// shards lists the masters of the majority's map with their replicas, by their first slot.
func (v *views) shards(s *Survey) []Shard {
	states := map[string]*NodeState{}
	for _, l := range s.Nodes {
		states[l.ID] = l
	}
	out := []Shard{}
	m := v.majorityNode().Map
	for _, n := range m.Nodes {
		if !n.Primary || n.HasFlag("handshake") {
			continue
		}
		ranges := rangeTexts(n.Ranges)
		sh := Shard{Slots: n.Slots(), RangesOf: len(ranges), Ranges: append([]string{},
			ranges[:min(len(ranges), maxShownRanges)]...), Epoch: n.Epoch, Replicas: []Member{}}
		sh.Master = v.member(n, states[n.ID], nil)
		for _, r := range m.Replicas(n.ID) {
			sh.Replicas = append(sh.Replicas, v.member(r, states[r.ID], states[n.ID]))
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
	stateNotAsked    = "not-asked"
)

// tooMany is why a node was not asked where mostAsked others were.
const tooMany = "so many nodes are not all asked"

// member is a node with its health: first by what other nodes say of it, then by what it says itself. master is the
// state of a replica's master.
func (v *views) member(n cluster.Node, state, master *NodeState) Member {
	m := Member{Address: n.Addr(), ID: n.ID, State: stateOK, Flags: append([]string{}, n.Flags...)}
	if m.Address == "" {
		m.Address = v.name(n.ID)
	}
	failed, suspects := v.failureVotes(n.ID)
	if state != nil {
		m.Server = state.Server
	}
	switch {
	case failed > 0:
		m.State, m.Why = stateFailed, "for "+format.Count(failed, "node")
	case state != nil && state.Withheld:
		m.State, m.Why = stateNotAsked, state.Why
	case state == nil && n.Addr() == "":
		m.State, m.Why = stateNotAsked, "its address is not known"
	case state == nil && !v.asked[n.Addr()]:
		m.State, m.Why = stateNotAsked, tooMany
	case state == nil:
		m.State, m.Why = stateUnreachable, "another node answers there"
	case !state.Answered():
		m.State, m.Why = stateUnreachable, state.Why
	case suspects > 0:
		m.State, m.Why = stateSuspected, "by "+format.Count(suspects, "node")
	case state.InfoFields.Numbers["loading"] == 1:
		m.State = stateLoading
	case state.InfoFields.Numbers["master_sync_in_progress"] == 1:
		m.State = stateSyncing
	case state.InfoFields.Text["master_link_status"] == "down":
		m.State, m.Why = stateLinkDown, fmt.Sprintf("for %.0f s",
			max(0, state.InfoFields.Numbers["master_link_down_since_seconds"]))
	}
	if !n.Primary && state != nil && state.Answered() {
		m.lag(n, state, master)
	}
	return m
}

// lag is how far a replica is behind its master: in bytes by the INFO of its master, which has both offsets at the same
// time, and in time since the last byte from it.
func (m *Member) lag(n cluster.Node, state, master *NodeState) {
	if seconds, ok := state.InfoFields.Numbers["master_last_io_seconds_ago"]; ok && seconds >= 0 {
		ns := int64(seconds * 1e9)
		m.LagNs = &ns
	}
	if master == nil {
		return
	}
	info := master.InfoFields
	written, ok := info.Numbers["master_repl_offset"]
	for k := 0; ok; k++ {
		key := fmt.Sprintf("slave%d.", k)
		port, known := info.Numbers[key+"port"]
		if !known {
			return
		}
		if int(port) == n.Port && (info.Text[key+"ip"] == n.IP || info.Text[key+"ip"] == n.Host ||
			info.Text[key+"ip"] == n.Hostname) {
			behind := int64(max(0, written-info.Numbers[key+"offset"]))
			m.LagBytes = &behind
			return
		}
	}
}

// summary sums up the majority's map.
func (v *views) summary() MapSummary {
	ref := v.majorityNode()
	sum := MapSummary{
		Size: cost.SizeOf(ref.Map), Source: ref.Source.String(), HeldBy: v.heldBy, Answered: len(v.nodes),
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
	for _, l := range v.nodes {
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
