package probe

import (
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// totalRetrans is how many segments the socket has retransmitted since it was opened, without spurious ones.
func totalRetrans(s *session.Session) (uint32, bool) {
	i, err := s.Conn().TCPInfo()
	return neededRetrans(i), err == nil
}

// neededRetrans leaves out spurious retransmissions (DSACK), such as tail loss probes where acknowledgements are late:
// no call waited for them.
func neededRetrans(i target.TCPInfo) uint32 {
	return i.TotalRetrans - min(i.Duplicates, i.TotalRetrans)
}

// freshRetrans is how many segments a connection retransmitted after the TCP handshake. Where the accept queue is full
// and the kernel uses SYN cookies, the caller's side is established, and what it sends is dropped until there is room.
func freshRetrans(s *session.Session, o session.Opening) int64 {
	if s == nil {
		return 0
	}
	total, ok := totalRetrans(s)
	if !ok {
		return 0
	}
	return max(int64(total)-o.SynRetrans, 0)
}

// tcpInfo records the state of the socket after a slow call, and whenever a call saw retransmissions.
func (p *prober) tcpInfo(s *session.Session, c recording.Call, before uint32) {
	i, err := s.Conn().TCPInfo()
	if err != nil {
		return // unix socket, or a system without TCP_INFO
	}
	during := int64(neededRetrans(i)) - int64(before)
	if during <= 0 && c.EndNs-c.IntendedNs < int64(p.Slow) {
		return
	}
	p.Sink.Event(recording.Event{
		TimeNs: c.EndNs, Source: recording.SourceProbe, Subject: p.Node,
		Kind: recording.KindTCPInfo,
		Detail: recording.Detail(recording.TCPDetail{
			CallStartNs: c.StartNs, Conn: c.Conn, RTTNs: ns(i.RTT),
			MinRTTNs: ns(i.MinRTT), RTONs: ns(i.RTO),
			TotalRetrans: int64(i.TotalRetrans), RetransDuring: max(during, 0), Lost: int64(i.Lost),
			Unacked:      int64(i.Unacked),
			NotsentBytes: int64(i.NotsentBytes), RwndLimitedNs: ns(i.RwndLimited), Local: s.LocalAddr(),
		}),
	})
}

func ns(d time.Duration) int64 { return int64(d) }
