//go:build linux

package tap

import (
	"strings"

	"slowpath/internal/recording"
)

// handshake is a new connection's commands until the first that does work.
type handshake struct {
	node    Node
	client  clientEnd
	side    string
	dialNs  int64
	from    int64
	ops     []string
	library string // name of the client library, by CLIENT SETINFO,
	version string // and its version
	trips   int
	flights int // of the TLS handshake before the commands,
	tlsNs   int64
	last    int64 // end of the last command or flight
}

const maxHandshakeOps = 16

// followHandshake follows the first calls of a connection. An end that does not report each of them, such as a client's
// whose server's end parses for both, has no handshake to report.
func (r *recorder) followHandshake(e *kernelCallEvent, call nodeOp, c recording.Call) {
	start, end := c.StartNs, c.EndNs
	h := r.handshakes[e.Conn]
	if h == nil {
		return
	}
	if e.Number != uint64(len(h.ops)+h.flights)+1 {
		delete(r.handshakes, e.Conn)
		return
	}
	if e.Flags&flagOpening != 0 {
		h.flights, h.tlsNs, h.last = h.flights+1, h.tlsNs+end-start, end
		return
	}
	ready := h.last
	if start >= h.last {
		h.trips++
	}
	h.last = max(h.last, end)
	op := call.name
	if recording.OfHandshake(op) && len(h.ops) < maxHandshakeOps {
		h.ops = append(h.ops, op)
		switch said := strings.ToLower(call.said); {
		case said == "":
		case said[0] >= '0' && said[0] <= '9':
			h.version = said
		default:
			h.library = said
		}
		return
	}
	delete(r.handshakes, e.Conn)
	r.wantedBefore(h, c, max(ready, h.from+h.dialNs), e.Flags&(flagFresh|flagMerged) == 0)
	p := r.clients[h.client]
	rest := max(start-max(ready, h.from+h.dialNs), 1)
	r.Sink.Event(recording.Event{
		TimeNs: h.from, DurationNs: end - h.from, Source: recording.SourceTap,
		Subject: h.node.Address, Kind: recording.KindHandshake,
		Detail: recording.Detail(recording.HandshakeDetail{
			Client: h.client.String(), PID: p.pid, Comm: p.comm,
			Side: h.side, DialNs: h.dialNs,
			Ops: h.ops, Library: h.library, Version: h.version, RoundTrips: h.trips - 1, TLSNs: h.tlsNs,
			IdleNs: rest, Op: op,
			Bytes: int64(e.ReqBytes),
		}),
	})
}
