package capture_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"slowpath/internal/recording"
	"slowpath/internal/source/capture"
)

// wire makes a capture: the packets of TCP connections, as they pass a place.
type wire struct {
	t      testing.TB
	at     time.Time
	link   layers.LinkType
	under  []gopacket.SerializableLayer // what the packets are packed into
	v6     bool
	client net.IP // nil: 10.0.0.7
	snap   int    // bytes of a packet that are kept; 0: all
	id     uint16
	all    []record
}

type record struct {
	at   time.Time
	data []byte
	size int
}

// flow is a connection. Its ends' sequence numbers are kept here.
type flow struct {
	w          *wire
	port       uint16 // of the client
	seq, acked [2]uint32
	window     [2]uint16
	lost       bool // packets are not captured
}

const (
	client = 0
	server = 1
)

var start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func newWire(t testing.TB) *wire { return &wire{t: t, at: start, link: layers.LinkTypeEthernet} }

// flow is a connection that was there before the capture.
func (w *wire) flow(port uint16) *flow {
	return &flow{
		w: w, port: port, seq: [2]uint32{1000, 0xfffffff0}, acked: [2]uint32{0xfffffff0, 1000},
		window: [2]uint16{500, 500},
	}
}

// dial opens a connection: the server answers after toServer, the client after toClient.
func (w *wire) dial(port uint16, toServer, toClient time.Duration) *flow {
	f := w.flow(port)
	f.put(client, "", func(t *layers.TCP) { t.SYN, t.ACK = true, false })
	f.seq[client]++
	f.acked[server] = f.seq[client]
	w.wait(toServer)
	f.put(server, "", func(t *layers.TCP) { t.SYN = true })
	f.seq[server]++
	f.acked[client] = f.seq[server]
	w.wait(toClient)
	f.ack(client)
	return f
}

func (w *wire) wait(d time.Duration) { w.at = w.at.Add(d) }

// put writes a packet from an end, without counting its data as sent.
func (f *flow) put(from int, data string, set func(*layers.TCP)) {
	w := f.w
	w.id++
	ports := [2]uint16{f.port, 6379}
	t := &layers.TCP{
		SrcPort: layers.TCPPort(ports[from]), DstPort: layers.TCPPort(ports[1-from]), Seq: f.seq[from],
		Ack: f.acked[from], ACK: true, PSH: data != "", Window: f.window[from],
	}
	if set != nil {
		set(t)
	}
	ends := [2]net.IP{{10, 0, 0, 7}, {10, 0, 0, 9}}
	if w.client != nil {
		ends[client] = w.client
	}
	var ip gopacket.SerializableLayer
	if w.v6 {
		ends = [2]net.IP{net.ParseIP("fd00::7"), net.ParseIP("fd00::9")}
		v6 := &layers.IPv6{
			Version: 6, NextHeader: layers.IPProtocolTCP, HopLimit: 64, SrcIP: ends[from], DstIP: ends[1-from],
		}
		ip = v6
		_ = t.SetNetworkLayerForChecksum(v6)
	} else {
		v4 := &layers.IPv4{
			Version: 4, TTL: 64, Id: w.id, Protocol: layers.IPProtocolTCP, SrcIP: ends[from], DstIP: ends[1-from],
		}
		ip = v4
		_ = t.SetNetworkLayerForChecksum(v4)
	}
	if f.lost {
		return
	}
	b := gopacket.NewSerializeBuffer()
	list := append(append([]gopacket.SerializableLayer{}, w.under...), ip, t, gopacket.Payload(data))
	if w.under == nil && w.link == layers.LinkTypeEthernet {
		kind := layers.EthernetTypeIPv4
		if w.v6 {
			kind = layers.EthernetTypeIPv6
		}
		list = append([]gopacket.SerializableLayer{ethernet(kind)}, list...)
	}
	o := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(b, o, list...); err != nil {
		w.t.Fatal(err)
	}
	r := record{w.at, bytes.Clone(b.Bytes()), len(b.Bytes())}
	if w.snap > 0 {
		r.data = r.data[:min(len(r.data), w.snap)]
	}
	w.all = append(w.all, r)
}

func ethernet(kind layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{
		SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: kind,
	}
}

// send sends data, in segments of at most 1400 bytes, and acknowledges what the other end has sent.
func (f *flow) send(from int, data string) {
	for len(data) > 0 {
		n := min(len(data), 1400)
		f.put(from, data[:n], nil)
		f.sent(from, n)
		data = data[n:]
	}
}

// sent counts bytes as sent and received.
func (f *flow) sent(from, n int) {
	f.seq[from] += uint32(n)
	f.acked[1-from] = f.seq[from]
}

// ack acknowledges without data.
func (f *flow) ack(from int) { f.put(from, "", nil) }

// fin ends a direction.
func (f *flow) fin(from int) {
	f.put(from, "", func(t *layers.TCP) { t.FIN = true })
	f.sent(from, 1)
}

// call is a request and its reply after a time.
func (f *flow) call(request, reply string, after time.Duration) {
	f.send(client, request)
	f.w.wait(after)
	f.send(server, reply)
}

// calls are quick GETs, one per 10 ms, each acknowledged at once by the client.
func (f *flow) calls(many int, after time.Duration) {
	for range many {
		f.call(cmd("GET", "key"), "$5\r\nvalue\r\n", after)
		f.w.wait(5 * time.Microsecond)
		f.ack(client)
		f.w.wait(10 * time.Millisecond)
	}
}

// cmd is a request.
func cmd(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// pcap is the capture as a file.
func (w *wire) pcap() []byte {
	var b bytes.Buffer
	p := pcapgo.NewWriterNanos(&b)
	_ = p.WriteFileHeader(262144, w.link)
	for _, r := range w.all {
		ci := gopacket.CaptureInfo{Timestamp: r.at, CaptureLength: len(r.data), Length: r.size}
		if err := p.WritePacket(ci, r.data); err != nil {
			w.t.Fatal(err)
		}
	}
	return b.Bytes()
}

// read makes a recording of it.
func (w *wire) read() *recording.Recording {
	w.t.Helper()
	rec, _, err := readFile(w.t, w.pcap())
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}

// readFile makes a recording of a file.
func readFile(t testing.TB, file []byte) (*recording.Recording, capture.Summary, error) {
	t.Helper()
	return readFiles(t, []capture.File{{Name: "x.pcap", ReadSeeker: bytes.NewReader(file)}})
}

func readFiles(t testing.TB, files []capture.File) (*recording.Recording, capture.Summary, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture.slowpath")
	w, err := recording.Create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := capture.Read(context.Background(), files, capture.Options{Version: "test"}, w)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, s, err
	}
	rec, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return rec, s, nil
}
