package host

import (
	"net/netip"
	"testing"

	"slowpath/internal/recording"
)

// sentBy is the socket of a server as TCP_INFO shows it.
type sentBy struct {
	port      uint16 // of the client
	acked     uint64
	delivered uint32
	unacked   uint32 // segments
	bytes     uint32 // of these
	resends   uint8  // in a row
	total     uint32 // segments that were sent again
	acksAgo   int64  // since the last acknowledgement, in nanoseconds
}

func (c sentBy) socket() *Socket {
	s := &Socket{
		Local:  netip.MustParseAddrPort("10.0.0.1:6379"),
		Remote: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), c.port), SendMSS: 1448, HasInfo: true,
		BytesAcked: c.acked, Delivered: c.delivered, DataSegsOut: c.delivered + c.unacked, Unacked: c.unacked,
		SendQ: c.bytes, Retransmits: c.resends, TotalRetrans: c.total, AckedAgoNs: c.acksAgo,
		RTONs: 200e6 << c.resends, Backoff: c.resends,
	}
	if c.resends > 0 {
		s.Timer = retransmissionTimer
	}
	return s
}

// table has the sockets of the second of two readings, for what is read between them.
type table struct {
	SocketTable
	sockets []sentBy
}

func (t table) Find(of []Ends, found func(*Socket)) error {
	for _, c := range t.sockets {
		for _, e := range of {
			if s := c.socket(); (Ends{s.Local, s.Remote}) == e {
				found(s)
			}
		}
	}
	return nil
}

// TestSegmentSizes: readings of the sockets of a server, one second apart, and what they say together.
func TestSegmentSizes(t *testing.T) {
	small := func(port uint16, calls uint32) sentBy {
		return sentBy{port: port, acked: uint64(calls) * 100, delivered: calls}
	}
	large := func(resends uint8) sentBy { // a reply of 3 kB after ten calls
		return sentBy{
			port: 1, acked: 1000, delivered: 10, unacked: 3, bytes: 3000, resends: resends, total: uint32(resends),
		}
	}
	for name, c := range map[string]struct {
		readings [][]sentBy
		between  []sentBy // sockets before the last reading
		want     recording.SegmentSizesDetail
	}{
		"nothing is lost": {readings: [][]sentBy{{small(1, 10)}, {small(1, 20)}}},
		"sent again once": {readings: [][]sentBy{{small(1, 10)}, {large(1)}}},
		"large ones are lost": {
			readings: [][]sentBy{
				{small(1, 10), small(2, 10)},
				{large(0), small(2, 20)},
				{large(3), small(2, 40)},
				{large(4), small(2, 50)},
			},
			want: recording.SegmentSizesDetail{
				Passed: 40, PassedBytes: 100, Lost: 3, LostBytes: 1448, Runs: 1, WaitedNs: 3e9,
			},
		},
		"another one, after others": {
			readings: [][]sentBy{
				{small(1, 10), small(2, 10)},
				{large(2), small(2, 20)},
				{{port: 3, unacked: 1, bytes: 1400, resends: 2, total: 2}, small(2, 40)},
			},
			want: recording.SegmentSizesDetail{
				Passed: 30, PassedBytes: 100, Lost: 2, LostBytes: 1400, Runs: 2, BetweenRuns: 20, BetweenBytes: 2000,
				WaitedNs: 1.2e9,
			},
		},
		"a small one": {
			readings: [][]sentBy{
				{small(1, 10)}, {{port: 1, acked: 1000, delivered: 10, unacked: 1, bytes: 60, resends: 2, total: 2}},
			},
			want: recording.SegmentSizesDetail{Lost: 1, LostBytes: 60, Runs: 1, WaitedNs: 6e8},
		},
		"the next one passed": {
			readings: [][]sentBy{
				{small(1, 10)}, {large(2)}, {{port: 1, acked: 4000, delivered: 13, total: 2}},
			},
			want: recording.SegmentSizesDetail{
				Passed: 3, PassedBytes: 1448, Lost: 1, LostBytes: 1448, Runs: 1, WaitedNs: 6e8,
			},
		},
		"it passed between two readings": {
			readings: [][]sentBy{{small(1, 10)}, {large(2)}, {}},
			between:  []sentBy{{port: 1, acked: 2448, delivered: 11, total: 3}},
			want: recording.SegmentSizesDetail{
				PassedBytes: 1448, Lost: 1, LostBytes: 1448, Runs: 1, WaitedNs: 6e8,
			},
		},
		"which is the first is not known": {
			readings: [][]sentBy{
				{small(1, 10)}, {{port: 1, acked: 1000, delivered: 10, unacked: 3, bytes: 1600, resends: 3, total: 3}},
			},
		},
		"it was idle before": {
			readings: [][]sentBy{{small(1, 10)}, {func() sentBy { c := large(2); c.acksAgo = 5e9; return c }()}},
		},
		"sent before the watch": {readings: [][]sentBy{{large(4)}, {large(5)}}},
	} {
		t.Run(name, func(t *testing.T) {
			sink := &memory{}
			s := segmentSizes{from: recording.Server, table: table{sockets: c.between}}
			for i, sockets := range c.readings {
				if i == len(c.readings)-1 && len(c.between) > 0 {
					s.follow(int64(i)*1e9 - 1)
				}
				s.begin(int64(i+1) * 1e9)
				for _, one := range sockets {
					s.add(one.socket(), node)
				}
				s.end(sink)
			}
			var got recording.SegmentSizesDetail
			for _, e := range sink.kind(recording.KindSegmentSizes) {
				got.Add(recording.DetailOf[recording.SegmentSizesDetail](e))
			}
			if c.want.Lost > 0 {
				c.want.Client, c.want.From = "10.0.0.2", recording.Server
			}
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}
