package sniffer

import (
	"net"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/net/bpf"
)

// packetOf is an IP packet with a TCP or UDP header and data.
func packetOf(t *testing.T, src, dst string, l gopacket.SerializableLayer, fragment uint16, options int) []byte {
	t.Helper()
	from, to := netip.MustParseAddr(src), netip.MustParseAddr(dst)
	protocol := layers.IPProtocolTCP
	if l.LayerType() == layers.LayerTypeUDP {
		protocol = layers.IPProtocolUDP
	}
	var ip gopacket.SerializableLayer = &layers.IPv6{
		Version: 6, NextHeader: protocol, SrcIP: net.IP(from.AsSlice()), DstIP: net.IP(to.AsSlice()),
	}
	if from.Is4() {
		v4 := &layers.IPv4{
			Version: 4, IHL: 5, Protocol: protocol, SrcIP: net.IP(from.AsSlice()), DstIP: net.IP(to.AsSlice()),
			FragOffset: fragment,
		}
		for range options {
			v4.Options = append(v4.Options, layers.IPv4Option{OptionType: 7, OptionLength: 4, OptionData: []byte{0, 0}})
		}
		ip = v4
	}
	b := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, ip, l, gopacket.Payload("+OK\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestFilter: packets from and to the servers pass, cut to the length, and no others.
func TestFilter(t *testing.T) {
	servers := []netip.AddrPort{
		netip.MustParseAddrPort("10.0.0.9:6379"), netip.MustParseAddrPort("[fd00::9]:6380"),
		netip.MustParseAddrPort("10.0.0.10:7000"), netip.MustParseAddrPort("0.0.0.0:9999"),
	}
	const snap = 100
	vm, err := bpf.NewVM(matching(servers, snap))
	if err != nil {
		t.Fatal(err)
	}
	segment := func(src, dst layers.TCPPort) *layers.TCP { return &layers.TCP{SrcPort: src, DstPort: dst} }
	for _, c := range []struct {
		name     string
		src, dst string
		layer    gopacket.SerializableLayer
		fragment uint16
		options  int
		want     int
	}{
		{"a request", "10.0.0.1", "10.0.0.9", segment(40000, 6379), 0, 0, snap},
		{"a reply", "10.0.0.9", "10.0.0.1", segment(6379, 40000), 0, 0, snap},
		{"with IP options", "10.0.0.9", "10.0.0.1", segment(6379, 40000), 0, 5, snap},
		{"another server of the list", "10.0.0.1", "10.0.0.10", segment(40000, 7000), 0, 0, snap},
		{"another port of a server", "10.0.0.1", "10.0.0.9", segment(40000, 7000), 0, 0, 0},
		{"the port at the other end", "10.0.0.1", "10.0.0.9", segment(6379, 40000), 0, 0, 0},
		{"another host", "10.0.0.1", "10.0.0.8", segment(40000, 6379), 0, 0, 0},
		{"UDP", "10.0.0.1", "10.0.0.9", &layers.UDP{SrcPort: 40000, DstPort: 6379}, 0, 0, 0},
		{"a later fragment", "10.0.0.1", "10.0.0.9", segment(40000, 6379), 100, 0, 0},
		{"IPv6", "fd00::1", "fd00::9", segment(40000, 6380), 0, 0, snap},
		{"IPv6, a reply", "fd00::9", "fd00::1", segment(6380, 40000), 0, 0, snap},
		{"IPv6, another host", "fd00::1", "fd00::8", segment(40000, 6380), 0, 0, 0},
		{"IPv6, the address of the family of another", "fd00::1", "fd00::9", segment(40000, 6379), 0, 0, 0},
		{"any address", "10.0.0.1", "192.0.2.1", segment(40000, 9999), 0, 0, snap},
		{"any address, IPv6", "2001:db8::1", "2001:db8::2", segment(9999, 40000), 0, 0, snap},
	} {
		n, err := vm.Run(packetOf(t, c.src, c.dst, c.layer, c.fragment, c.options))
		if err != nil || n != c.want {
			t.Errorf("%s: %d bytes are kept, want %d (%v)", c.name, n, c.want, err)
		}
	}
	for _, short := range [][]byte{{}, {0x45}, {0x60}, {0x00, 0x01}} {
		if n, err := vm.Run(short); n > 0 {
			t.Errorf("%x: %d bytes are kept (%v)", short, n, err)
		}
	}
}

// TestFilterSize: as many servers as are allowed fit into the kernel's limit, and one more is refused.
func TestFilterSize(t *testing.T) {
	var many []netip.AddrPort
	for range maxServers {
		many = append(many, netip.MustParseAddrPort("[fd00::9]:6379"))
	}
	program, err := filter(many, 1, 100)
	const most = 4096 // BPF_MAXINSNS
	if err != nil || len(program) > most {
		t.Errorf("%d instructions, %v", len(program), err)
	}
	if _, err := filter(append(many, many[0]), 1, 100); err == nil {
		t.Error("too many servers are not refused")
	}
}
