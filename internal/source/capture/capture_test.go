package capture_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/klauspost/compress/zstd"

	"slowpath/internal/recording"
	"slowpath/internal/source/capture"
)

const ms = time.Millisecond

// slow are the calls of a recording that took 5 ms or more.
func slow(rec *recording.Recording) (out []recording.Call) {
	for _, c := range rec.Calls {
		if c.EndNs-c.StartNs >= int64(5*ms) {
			out = append(out, c)
		}
	}
	return out
}

// total is how many calls the histograms have.
func total(rec *recording.Recording) (n int64) {
	for _, h := range rec.HistogramSums(recording.SourceTap) {
		n += h.Sum.TotalCount()
	}
	return n
}

// unseen is the count of an unseen event.
func unseen(rec *recording.Recording, what string) float64 {
	for _, e := range rec.Events {
		if u := recording.DetailOf[recording.Unseen](e); e.Kind == recording.KindUnseen && u.What == what {
			return u.Count
		}
	}
	return 0
}

const unpaired = "calls whose reply could not be matched"

// example are 30 quick calls, and one of 44 ms that the server's kernel acknowledged after 41 ms: incident 004.
func example(w *wire) {
	f := w.dial(40001, 200*time.Microsecond, 10*time.Microsecond)
	f.calls(30, 250*time.Microsecond)
	f.send(client, cmd("GET", "key"))
	w.wait(41 * ms)
	f.ack(server)
	w.wait(3 * ms)
	f.send(server, "$5\r\nvalue\r\n")
	w.wait(5 * time.Microsecond)
	f.ack(client)
	f.fin(client)
	f.fin(server)
}

func checkExample(t *testing.T, rec *recording.Recording, node string) {
	t.Helper()
	if n := total(rec); n != 31 {
		t.Errorf("%d calls, want 31", n)
	}
	calls := slow(rec)
	if len(calls) != 1 {
		t.Fatalf("%d slow calls, want 1", len(calls))
	}
	c := calls[0]
	if ns := c.EndNs - c.StartNs; ns != int64(44*ms) || c.Op != "GET" || c.Node != node || c.Side != recording.Client {
		t.Errorf("the slow call: %d ns, %s at %s from %s", ns, c.Op, c.Node, c.Side)
	}
	var sum, atServer int64
	for _, s := range rec.SegmentsOf(c.ID) {
		sum += s.ToNs - s.FromNs
		if s.Actor == recording.Server && s.State == recording.Unexplained {
			atServer += s.ToNs - s.FromNs
		}
	}
	if sum != int64(44*ms) || atServer < int64(43*ms) {
		t.Errorf("its segments have %d ns, %d of them at the server", sum, atServer)
	}
	acks := rec.EventsOf(recording.SourceTap, node, recording.KindRequestAck)
	if len(acks) != 1 || acks[0].DurationNs != int64(41*ms) {
		t.Fatalf("acknowledgements of requests: %v", acks)
	}
	if d := recording.DetailOf[recording.RequestAckDetail](acks[0]); d.ReplyNs != int64(3*ms) || !d.Delayed {
		t.Errorf("its detail is %+v", d)
	}
}

// TestFormats: files, links and tunnels give the same calls.
func TestFormats(t *testing.T) {
	const v4, v6 = "10.0.0.9:6379", "[fd00::9]:6379"
	ip4 := func(l ...gopacket.SerializableLayer) []gopacket.SerializableLayer { return l }
	for _, c := range []struct {
		name string
		wire wire
		node string
	}{
		{"Ethernet", wire{link: layers.LinkTypeEthernet}, v4},
		{"Ethernet, IPv6", wire{link: layers.LinkTypeEthernet, v6: true}, v6},
		{"raw IP", wire{link: layers.LinkTypeRaw}, v4},
		{"raw IPv6", wire{link: layers.LinkTypeRaw, v6: true}, v6},
		{"loopback", wire{
			link:  layers.LinkTypeNull,
			under: ip4(&layers.Loopback{Family: layers.ProtocolFamilyIPv4}),
		}, v4},
		{"VLAN", wire{link: layers.LinkTypeEthernet, under: ip4(ethernet(layers.EthernetTypeDot1Q), &layers.Dot1Q{
			VLANIdentifier: 7, Type: layers.EthernetTypeIPv4,
		})}, v4},
		{"VXLAN", wire{link: layers.LinkTypeEthernet, under: vxlan()}, v4},
		{"cooked v1", wire{link: layers.LinkTypeLinuxSLL, under: ip4(gopacket.Payload([]byte{
			0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0,
		}))}, v4},
		{"cooked v2", wire{link: layers.LinkTypeLinuxSLL2, under: ip4(gopacket.Payload([]byte{
			8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0,
		}))}, v4},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.wire.t, c.wire.at = t, start
			example(&c.wire)
			checkExample(t, c.wire.read(), c.node)
		})
	}
}

// vxlan is a tunnel around Ethernet.
func vxlan() []gopacket.SerializableLayer {
	ip := &layers.IPv4{
		Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{192, 0, 2, 1}, DstIP: net.IP{192, 0, 2, 2},
	}
	udp := &layers.UDP{SrcPort: 40000, DstPort: 4789}
	_ = udp.SetNetworkLayerForChecksum(ip)
	return []gopacket.SerializableLayer{
		ethernet(layers.EthernetTypeIPv4), ip, udp, &layers.VXLAN{ValidIDFlag: true, VNI: 7},
		ethernet(layers.EthernetTypeIPv4),
	}
}

// TestFiles: how a file is written makes no difference.
func TestFiles(t *testing.T) {
	w := newWire(t)
	example(w)
	plain := w.pcap()
	for name, file := range map[string][]byte{
		"pcap": plain, "microseconds, big-endian": bigEndian(w), "pcapng": pcapng(w), "gzip": gzipped(plain),
		"zstd": zstded(t, plain), "pcapng, gzip": gzipped(pcapng(w)),
	} {
		t.Run(name, func(t *testing.T) {
			rec, s, err := readFile(t, file)
			if err != nil {
				t.Fatal(err)
			}
			checkExample(t, rec, "10.0.0.9:6379")
			if s.Truncated != "" || s.Vantage != "at the client's side" {
				t.Errorf("%+v", s)
			}
		})
	}
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

func zstded(t *testing.T, b []byte) []byte {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll(b, nil)
}

func pcapng(w *wire) []byte {
	var b bytes.Buffer
	p, err := pcapgo.NewNgWriter(&b, w.link)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range w.all {
		ci := gopacket.CaptureInfo{Timestamp: r.at, CaptureLength: len(r.data), Length: r.size}
		if err := p.WritePacket(ci, r.data); err != nil {
			w.t.Fatal(err)
		}
	}
	_ = p.Flush()
	return b.Bytes()
}

func bigEndian(w *wire) []byte {
	b := binary.BigEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, byte(w.link))
	for _, r := range w.all {
		b = binary.BigEndian.AppendUint32(b, uint32(r.at.Unix()))
		b = binary.BigEndian.AppendUint32(b, uint32(r.at.Nanosecond()/1000))
		b = binary.BigEndian.AppendUint32(b, uint32(len(r.data)))
		b = binary.BigEndian.AppendUint32(b, uint32(r.size))
		b = append(b, r.data...)
	}
	return b
}

// TestRefused: a file that gives no calls says why.
func TestRefused(t *testing.T) {
	w := newWire(t)
	example(w)
	whole := w.pcap()
	http, tls, one, empty := newWire(t), newWire(t), newWire(t), newWire(t)
	http.dial(40001, ms, ms).call("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", ms)
	tls.dial(40001, ms, ms).call("\x16\x03\x01\x00\x05hello", "\x16\x03\x03\x00\x05hello", ms)
	cut := newWire(t)
	cut.snap = 70
	cut.dial(40001, ms, ms).calls(9, ms)
	never := newWire(t)
	never.dial(40001, ms, ms).calls(9, ms)
	f := one.flow(40001)
	for range 9 {
		f.send(client, cmd("GET", "key"))
		f.sent(server, 11)
		one.wait(10 * ms)
	}
	for _, c := range []struct {
		name string
		file []byte
		want error
		say  string
	}{
		{"empty", nil, capture.ErrNotCapture, "empty or cut within its header"},
		{"header cut", whole[:10], capture.ErrNotCapture, "cut within its header"},
		{"no packets", empty.pcap(), capture.ErrNoCalls, "no packets"},
		{"HTTP", http.pcap(), capture.ErrNoCalls, "none of the connections"},
		{"TLS", tls.pcap(), capture.ErrNoCalls, "under TLS"},
		{"requests alone", one.pcap(), capture.ErrNoCalls, "both directions"},
		{"no times", withoutTimes(never), capture.ErrNoCalls, "has a time"},
		{"cut packets", cut.pcap(), capture.ErrNoCalls, "are cut"},
		{"gzip of a text", gzipped([]byte("hello, world")), capture.ErrNotCapture, "what is compressed in it is none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := readFile(t, c.file)
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.say) {
				t.Errorf("error %v, want %v with %q", err, c.want, c.say)
			}
		})
	}
}

// withoutTimes is a capture as a pcapng file of Simple Packet Blocks, which have no time.
func withoutTimes(w *wire) (file []byte) {
	block := func(kind uint32, body []byte) {
		body = append(body, make([]byte, -len(body)&3)...)
		file = binary.LittleEndian.AppendUint32(file, kind)
		file = binary.LittleEndian.AppendUint32(file, uint32(len(body)+12))
		file = append(file, body...)
		file = binary.LittleEndian.AppendUint32(file, uint32(len(body)+12))
	}
	block(0x0a0d0d0a, []byte{0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255})
	block(1, []byte{byte(layers.LinkTypeEthernet), 0, 0, 0, 0, 0, 4, 0})
	for _, r := range w.all {
		block(3, append(binary.LittleEndian.AppendUint32(nil, uint32(r.size)), r.data...))
	}
	return file
}

// TestTimes: a capture may count its times from 0, packets come in any order, and single ones may have no time or that
// of another age.
func TestTimes(t *testing.T) {
	at := func(seconds ...int64) func([]record) {
		return func(all []record) {
			for i, s := range seconds {
				all[i].at = time.Unix(s, 0)
			}
		}
	}
	for name, c := range map[string]struct {
		set   func([]record)
		spoil float64 // packets that are left out
	}{
		"from 0": {func(all []record) {
			first := all[0].at
			for i := range all {
				all[i].at = time.Unix(0, 0).Add(all[i].at.Sub(first))
			}
		}, 0},
		"the first without": {at(0), 1},
		"one is later":      {func(all []record) { all[0].at, all[40].at = all[40].at, all[0].at }, 0},
		"of another age":    {at(4e9, 4e9+1, 4e9), 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			example(w)
			w.flow(40002).calls(30, 200*us)
			c.set(w.all)
			rec := w.read()
			if n, lost := total(rec), unseen(rec, "packets with a time that cannot be"); n < 60 || lost != c.spoil {
				t.Errorf("%d calls, %v packets left out", n, lost)
			}
			if start, end := rec.Window(); end-start > int64(time.Minute) {
				t.Errorf("from %d to %d", start, end)
			}
		})
	}
}

// TestTruncatedFile: what comes before the cut counts.
func TestTruncatedFile(t *testing.T) {
	w := newWire(t)
	example(w)
	file := w.pcap()
	for name, cut := range map[string][]byte{"pcap": file[:len(file)-100], "gzip": gzipped(file)[:1000]} {
		rec, s, err := readFile(t, cut)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s.Truncated == "" || total(rec) == 0 {
			t.Errorf("%s: truncated %q, %d calls", name, s.Truncated, total(rec))
		}
	}
}
