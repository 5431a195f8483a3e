package capture_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"slowpath/internal/house/needs"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"slowpath/internal/source/capture"
)

// mostHeap is what reading a capture may keep, in bytes, whatever it holds.
const mostHeap = 512 << 20

// pcapOf is a capture that is made while it is read: packet i of n.
type pcapOf struct {
	n, at int
	make  func(i int) *flow
	rest  bytes.Buffer
	out   *pcapgo.Writer
	most  uint64 // bytes of the heap that were in use at most
}

func (p *pcapOf) Seek(int64, int) (int64, error) {
	p.at = 0
	p.rest.Reset()
	p.out = pcapgo.NewWriterNanos(&p.rest)
	return 0, p.out.WriteFileHeader(262144, layers.LinkTypeEthernet)
}

func (p *pcapOf) Read(b []byte) (int, error) {
	for p.rest.Len() == 0 {
		if p.at == p.n {
			return 0, io.EOF
		}
		w := p.make(p.at).w
		for _, r := range w.all {
			ci := gopacket.CaptureInfo{Timestamp: r.at, CaptureLength: len(r.data), Length: r.size}
			if err := p.out.WritePacket(ci, r.data); err != nil {
				return 0, err
			}
		}
		w.all = w.all[:0]
		if p.at++; p.at%5000 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			p.most = max(p.most, m.HeapAlloc)
		}
	}
	return p.rest.Read(b)
}

// TestHostileCaptures: captures that would fill memory if all of what they hold were kept. It measures the
// memory of this process.
func TestHostileCaptures(t *testing.T) {
	needs.Real(t)
	large := strings.Repeat("x", 30_000)
	for _, c := range []struct {
		name string
		many int // packets
		make func(w *wire, i int) *flow
	}{
		{"connections without end, each with a request that waits", 120_000, func(w *wire, i int) *flow {
			f := w.flow(uint16(i))
			w.client = net.IP{10, byte(i >> 24), byte(i >> 16), byte(i >> 8)}
			f.send(client, cmd("GET", fmt.Sprint(i)))
			return f
		}},
		{"large segments with holes between them", 20_000, func(w *wire, i int) *flow {
			f := w.flow(uint16(40000 + i%1000))
			f.put(client, cmd("GET", large), func(t *layers.TCP) { t.Seq += uint32(i/1000) * 50_000 })
			return f
		}},
		{"one byte in each segment, with holes", 60_000, func(w *wire, i int) *flow {
			f := w.flow(uint16(40000 + i%100))
			text := "x"
			if i < 100 {
				text = cmd("GET", "key")
			}
			f.put(client, text, func(t *layers.TCP) { t.Seq += uint32(i/100) * 100 })
			return f
		}},
		{"requests without replies", 60_000, func(w *wire, i int) *flow {
			f := w.flow(uint16(40000 + i%100))
			f.seq[client] += uint32(i/100) * uint32(len(cmd("GET", "key")))
			f.send(client, cmd("GET", "key"))
			return f
		}},
		{"commands without end", 60_000, func(w *wire, i int) *flow {
			f := w.flow(uint16(i))
			w.client = net.IP{10, byte(i >> 24), byte(i >> 16), byte(i >> 8)}
			f.put(client, "", func(t *layers.TCP) { t.SYN, t.ACK = true, false })
			f.sent(client, 1)
			name := fmt.Sprintf("M%c%c.X%c%c", 'A'+i%26, 'A'+i/26%26, 'A'+i/676%26, 'A'+i/17576%26)
			f.call(cmd(name, "key"), ":1\r\n", us)
			return f
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWire(t)
			p := &pcapOf{n: c.many, make: func(i int) *flow {
				w.at = start
				return c.make(w, i)
			}}
			held, waiting := capture.ReadBare(p, checker{t})
			if held != 0 || waiting != 0 || p.most > mostHeap {
				t.Errorf("%d bytes and %d requests are left; %d MB of heap", held, waiting, p.most>>20)
			}
			t.Logf("%d MB of heap at most", p.most>>20)
		})
	}
}
