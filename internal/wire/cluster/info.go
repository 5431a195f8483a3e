package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

// Info is CLUSTER INFO: the cluster's health as one node sees it.
type Info struct {
	State         string // ok or fail
	SlotsAssigned int64
	SlotsOK       int64 // of nodes that are not failing
	SlotsPFail    int64 // of nodes that this node cannot reach
	SlotsFail     int64 // of nodes that the cluster holds for failed
	KnownNodes    int64
	Size          int64 // primaries with slots
	CurrentEpoch  uint64
	MyEpoch       uint64

	MessagesSent     int64 // on the cluster bus, since the start
	MessagesReceived int64
	// LinksBufferLimitExceeded counts bus links closed for their output buffer (since Redis 7.0).
	LinksBufferLimitExceeded int64
}

// ParseInfo parses CLUSTER INFO, lines of name:value. Unknown names are ignored.
func ParseInfo(text string) (Info, error) {
	var info Info
	if len(text) > maxLineBytes {
		return info, fmt.Errorf("%w: CLUSTER INFO of %d bytes", ErrTooLarge, len(text))
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if !ok && name == "" {
			continue
		}
		if !ok || !info.set(name, value) {
			return Info{}, fmt.Errorf("%w: line %d of CLUSTER INFO: %.60q", ErrMalformed, number, line)
		}
	}
	if info.State == "" {
		return Info{}, fmt.Errorf("%w: CLUSTER INFO without cluster_state", ErrMalformed)
	}
	return info, nil
}

// set stores a value, and reports whether it is a valid one for its name.
func (i *Info) set(name, value string) bool {
	var err error
	switch name {
	case "cluster_state":
		i.State = value
		return value != ""
	case "cluster_current_epoch":
		i.CurrentEpoch, err = strconv.ParseUint(value, 10, 64)
	case "cluster_my_epoch":
		i.MyEpoch, err = strconv.ParseUint(value, 10, 64)
	default:
		if field := i.counter(name); field != nil {
			*field, err = strconv.ParseInt(value, 10, 64)
		}
	}
	return err == nil
}

func (i *Info) counter(name string) *int64 {
	switch name {
	case "cluster_slots_assigned":
		return &i.SlotsAssigned
	case "cluster_slots_ok":
		return &i.SlotsOK
	case "cluster_slots_pfail":
		return &i.SlotsPFail
	case "cluster_slots_fail":
		return &i.SlotsFail
	case "cluster_known_nodes":
		return &i.KnownNodes
	case "cluster_size":
		return &i.Size
	case "cluster_stats_messages_sent":
		return &i.MessagesSent
	case "cluster_stats_messages_received":
		return &i.MessagesReceived
	case "total_cluster_links_buffer_limit_exceeded":
		return &i.LinksBufferLimitExceeded
	}
	return nil
}
