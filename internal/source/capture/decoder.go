package capture

import (
	"encoding/binary"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// decoder finds TCP in packets of any link, also in tunnels: the innermost counts. It does not allocate.
type decoder struct {
	ethernet layers.Ethernet
	loopback layers.Loopback
	cooked   layers.LinuxSLL
	cooked2  layers.LinuxSLL2
	vlan     layers.Dot1Q
	ip4      layers.IPv4
	ip6      layers.IPv6
	options  layers.IPv6ExtensionSkipper
	udp      layers.UDP
	vxlan    layers.VXLAN
	geneve   layers.Geneve
	gre      layers.GRE
	tcp      layers.TCP
	parsers  map[gopacket.LayerType]*gopacket.DecodingLayerParser
	found    []gopacket.LayerType
}

// firstLayers are the links of captures (https://www.tcpdump.org/linktypes.html).
var firstLayers = map[layers.LinkType]gopacket.LayerType{
	layers.LinkTypeEthernet:  layers.LayerTypeEthernet,
	layers.LinkTypeNull:      layers.LayerTypeLoopback,
	layers.LinkTypeLoop:      layers.LayerTypeLoopback,
	layers.LinkTypeLinuxSLL:  layers.LayerTypeLinuxSLL,
	layers.LinkTypeLinuxSLL2: layers.LayerTypeLinuxSLL2,
	layers.LinkTypeIPv4:      layers.LayerTypeIPv4,
	layers.LinkTypeIPv6:      layers.LayerTypeIPv6,
}

// rawIP are the links without a header: 101, and what some systems write for it.
var rawIP = map[layers.LinkType]bool{101: true, 12: true, 14: true}

func (d *decoder) init() {
	d.parsers = map[gopacket.LayerType]*gopacket.DecodingLayerParser{}
	for _, first := range firstLayers {
		p := gopacket.NewDecodingLayerParser(first, &d.ethernet, &d.loopback, &d.cooked, &d.cooked2, &d.vlan, &d.ip4,
			&d.ip6, &d.options, &d.udp, &d.vxlan, &d.geneve, &d.gre, &d.tcp)
		p.IgnoreUnsupported = true
		d.parsers[first] = p
	}
}

// decode fills in a packet. missing is how many bytes of it the file does not have.
func (d *decoder) decode(link layers.LinkType, data []byte, missing int, p *packet) {
	first, known := firstLayers[link]
	if rawIP[link] && len(data) > 0 {
		first, known = layers.LayerTypeIPv4, true
		if data[0]>>4 == 6 {
			first = layers.LayerTypeIPv6
		}
	}
	if !known || len(data) == 0 {
		return
	}
	parser := d.parsers[first]
	if parser.DecodeLayers(data, &d.found) != nil || len(d.found) == 0 {
		return
	}
	if d.found[len(d.found)-1] != layers.LayerTypeTCP {
		return
	}
	var src, dst netip.Addr
	for i := len(d.found) - 1; i >= 0 && !src.IsValid(); i-- {
		switch d.found[i] {
		case layers.LayerTypeIPv4:
			src, _ = netip.AddrFromSlice(d.ip4.SrcIP)
			dst, _ = netip.AddrFromSlice(d.ip4.DstIP)
			p.id = d.ip4.Id
		case layers.LayerTypeIPv6:
			src, _ = netip.AddrFromSlice(d.ip6.SrcIP)
			dst, _ = netip.AddrFromSlice(d.ip6.DstIP)
		}
	}
	t := &d.tcp
	p.tcp = src.IsValid() && dst.IsValid()
	p.src = netip.AddrPortFrom(src.Unmap(), uint16(t.SrcPort))
	p.dst = netip.AddrPortFrom(dst.Unmap(), uint16(t.DstPort))
	p.seq, p.ack, p.window = t.Seq, t.Ack, t.Window
	p.flags = bit(t.FIN, flagFIN) | bit(t.SYN, flagSYN) | bit(t.RST, flagRST) | bit(t.ACK, flagACK)
	p.payload, p.size = t.Payload, len(t.Payload)
	if parser.Truncated {
		p.size += missing
	}
	for _, o := range t.Options {
		if o.OptionType == layers.TCPOptionKindTimestamps && len(o.OptionData) == 8 {
			p.stamp = binary.BigEndian.Uint32(o.OptionData)
		}
	}
}

func bit(set bool, flag uint8) uint8 {
	if set {
		return flag
	}
	return 0
}
