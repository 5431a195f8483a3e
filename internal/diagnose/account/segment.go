package account

import "slowpath/internal/recording"

// Actors and states, by the names that the rest of this package and the causes use.
const (
	App         = recording.App
	Client      = recording.Client
	Network     = recording.Network
	Server      = recording.Server
	Nobody      = recording.Nobody
	PoolWait    = recording.PoolWait
	LoopWait    = recording.LoopWait
	LockWait    = recording.LockWait
	Dial        = recording.Dial
	TLS         = recording.TLS
	Handshake   = recording.Handshake
	RunQueue    = recording.RunQueue
	Out         = recording.Out
	Back        = recording.Back
	Retransmit  = recording.Retransmit
	Throttled   = recording.Throttled
	Frozen      = recording.Frozen
	Busy        = recording.Busy
	Blocked     = recording.Blocked
	Exec        = recording.Exec
	Withheld    = recording.Withheld
	AckWait     = recording.AckWait
	Send        = recording.Send
	Receive     = recording.Receive
	OffCPU      = recording.OffCPU
	Unexplained = recording.Unexplained
)

// Segment is a part of a call's time. Suspect is the index in Ledger.Suspects of what it waited for, -1 where unknown.
type Segment struct {
	Actor   string
	State   string
	FromNs  int64
	ToNs    int64
	Culprit string
	Suspect int
}

// Ns is the length of the segment.
func (s Segment) Ns() int64 { return s.ToNs - s.FromNs }

// cut is the part of a segment in [from, to), or the segment at another time.
func cut(s Segment, from, to int64) Segment {
	s.FromNs, s.ToNs = from, to
	return s
}
