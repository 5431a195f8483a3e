package capture_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"

	"slowpath/internal/recording"
	"slowpath/internal/source/capture"
)

// checker is a sink that checks what it is given.
type checker struct{ t *testing.T }

func (c checker) Call(k recording.Call, segs ...recording.Segment) {
	at := k.StartNs
	for _, s := range segs {
		if s.FromNs < at || s.ToNs <= s.FromNs || s.ToNs > k.EndNs {
			c.t.Fatalf("segments %+v of [%d, %d]", segs, k.StartNs, k.EndNs)
		}
		at = s.ToNs
	}
	if k.EndNs < k.StartNs || k.Op == "" || k.Node == "" {
		c.t.Fatalf("%+v", k)
	}
}

func (c checker) Event(e recording.Event) {
	if e.DurationNs < 0 {
		c.t.Fatalf("%+v", e)
	}
}
func (checker) Histogram(recording.Histogram)     {}
func (checker) Sample(recording.Sample)           {}
func (checker) ConnUse(string, recording.ConnUse) {}
func (checker) Snapshot(recording.Snapshot)       {}
func (checker) SetMeta(string, string)            {}
func (checker) Flush() error                      { return nil }
func (c checker) check(file []byte) {
	if held, waiting := capture.ReadBare(bytes.NewReader(file), c); held != 0 || waiting != 0 {
		c.t.Fatalf("%d bytes and %d requests are kept of connections that have ended", held, waiting)
	}
}

// checkPair reads a file as one end, and another one as the other end.
func (c checker) checkPair(x, y []byte) {
	one, two := capture.File{Name: "a", ReadSeeker: bytes.NewReader(x)}, capture.File{Name: "b"}
	two.ReadSeeker = bytes.NewReader(y)
	_, _ = capture.Captures(context.Background(), []capture.File{one, two}) // any bytes may be refused
	p, err := capture.Ends(context.Background(), []capture.File{one}, []capture.File{two}, capture.Options{})
	if err == nil {
		_, _ = p.Read(context.Background(), c, c)
	}
}

// FuzzCaptureFile: a file of any bytes is read to its end or refused, alone and with one of the other end.
func FuzzCaptureFile(f *testing.F) {
	w := newWire(f)
	example(w)
	f.Add(w.pcap())
	f.Add(pcapng(w))
	f.Add(bigEndian(w))
	f.Add(gzipped(w.pcap()))
	near := &wire{t: f, at: start, link: layers.LinkTypeRaw}
	example(near)
	far := near.atServerSide(100*us, time.Second, nil).pcap()
	f.Add(near.pcap())
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 2 && file[0] == 0x28 {
			return // a zstd file of a few bytes may expand to gigabytes, which takes its time
		}
		checker{t}.check(file)
		checker{t}.checkPair(file, far)
	})
}

// texts are what the packets of FuzzPackets carry.
var texts = []string{
	"", cmd("GET", "key"), "$5\r\nvalue\r\n", "+OK\r\n", cmd("SET", "key", "a long value of many bytes"), "$40\r\nabc",
	"*2\r\n$3\r\nGE", "T\r\n$1\r\nx\r\n", cmd("CLIENT", "REPLY", "OFF"), cmd("CLIENT", "REPLY", "ON"), ">1\r\n+x\r\n",
	cmd("SUBSCRIBE", "x"), cmd("BLPOP", "q", "0"), "-ERR no\r\n", "\r\n", "*1000\r\n:1\r\n", cmd("HELLO", "3"),
	"\x16\x03\x01", "PING\r\n", "x",
}

// FuzzPackets: any sequence of packets of two connections. Four bytes are a packet: who sends it and its flags, what it
// carries, by how much its numbers are off, and how much later it comes.
func FuzzPackets(f *testing.F) {
	f.Add([]byte{8, 0, 0, 1, 1 | 8 | 16, 0, 0, 1, 16, 0, 0, 1, 16, 1, 0, 9, 17, 2, 0, 9})
	f.Add(bytes.Repeat([]byte{16, 1, 0, 1, 17, 2, 0, 9}, 5))
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 4*200 {
			return
		}
		w := newWire(t)
		w.snap = 90
		flows := []*flow{w.flow(40001), w.flow(40002)}
		for ; len(ops) >= 4; ops = ops[4:] {
			who, text, off, later := ops[0], texts[int(ops[1])%len(texts)], int8(ops[2]), ops[3]
			fl, from := flows[who>>1&1], int(who&1)
			w.wait(time.Duration(later) * time.Duration(later) * 20 * us)
			fl.put(from, text, func(p *layers.TCP) {
				p.FIN, p.SYN, p.RST, p.ACK = who&4 != 0, who&8 != 0, who&32 != 0 && who&64 != 0, who&16 != 0
				if who&128 != 0 {
					p.Ack += uint32(int32(off))
					p.Window = 0
				} else {
					p.Seq += uint32(int32(off))
				}
			})
			fl.sent(from, len(text))
			if who&12 != 0 {
				fl.sent(from, 1)
			}
		}
		checker{t}.check(w.pcap())
	})
}
