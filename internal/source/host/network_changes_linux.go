package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// NetworkChanges hears from the kernel of changes of this host's routes, rules, queueing disciplines and nftables, in
// slowpath's own network namespace. It costs nothing while nothing changes.
type NetworkChanges struct {
	Unheard []recording.BlindSpot // what the kernel does not tell of
	sockets []*os.File            // of rtnetlink and netfilter
}

// kindsOfChanges are what may be heard of, with the name of it in a blind spot.
var kindsOfChanges = [...]struct {
	protocol int
	groups   uint32
	of       string
}{
	{unix.NETLINK_ROUTE, routeGroups, "routes, routing rules and queueing disciplines of this host"},
	{unix.NETLINK_NETFILTER, nftablesGroups, "netfilter rules (nftables) of this host"},
}

// Groups of rtnetlink (linux/rtnetlink.h) and nfnetlink (linux/netfilter/nfnetlink.h), and the end of a transaction of
// nftables (linux/netfilter/nf_tables.h), with its attributes.
const (
	routeGroups = 1<<(unix.RTNLGRP_TC-1) | 1<<(unix.RTNLGRP_IPV4_ROUTE-1) | 1<<(unix.RTNLGRP_IPV6_ROUTE-1) |
		1<<(unix.RTNLGRP_IPV4_RULE-1)
	nftablesGroups = 1 << (unix.NFNLGRP_NFTABLES - 1)
	newGeneration  = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWGEN
	generationPID  = 2
	generationName = 3
)

const (
	networkMost   = 100 // rows of a socket in an hour: some hosts change something all the time
	networkHour   = int64(time.Hour)
	networkBuffer = 32 << 10
	sizeOfNFGen   = 4 // struct nfgenmsg
)

// HearNetwork begins to listen. nftables take CAP_NET_ADMIN: without it the rest is heard alone.
func HearNetwork() *NetworkChanges {
	n := &NetworkChanges{}
	for _, k := range kindsOfChanges {
		socket, err := hearing(k.protocol, k.groups, k.of)
		if err == nil {
			n.sockets = append(n.sockets, socket)
			continue
		}
		spot := recording.BlindSpot{What: "changes of " + k.of, Why: "the kernel does not tell of them: " + err.Error()}
		if errors.Is(err, unix.EPERM) {
			spot.Why = "only who has CAP_NET_ADMIN is told of them"
			spot.Enable = "run slowpath doctor, top or record as root, or with CAP_NET_ADMIN; serve gives that up first"
		}
		n.Unheard = append(n.Unheard, spot)
	}
	return n
}

// hearing is a socket that is told of what is multicast to groups. Its name says of what.
func hearing(protocol int, groups uint32, of string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), of), nil
}

// Close ends Watch.
func (n *NetworkChanges) Close() {
	for _, s := range n.sockets {
		s.Close()
	}
}

// Watch records the changes until ctx ends, at most networkMost of each socket in an hour.
func (n *NetworkChanges) Watch(ctx context.Context, c clock.Clock, sink recording.Sink) {
	defer context.AfterFunc(ctx, n.Close)()
	var all sync.WaitGroup
	for _, s := range n.sockets {
		if raw, err := s.SyscallConn(); err == nil {
			all.Go(func() { hear(raw, s.Name(), c, sink) })
		}
	}
	all.Wait()
}

// hear records what a socket is told until it is closed. What it leaves out is a blind spot.
func hear(raw syscall.RawConn, of string, c clock.Clock, sink recording.Sink) {
	buf := make([]byte, networkBuffer)
	row := func(kind, detail string) {
		sink.Event(recording.Event{
			TimeNs: c.Now(), Source: recording.SourceHost, Subject: recording.SubjectMachine,
			Kind: kind, Detail: detail,
		})
	}
	said := false
	leftOut := func(why string) {
		if !said {
			row(recording.KindBlindSpot, recording.Detail(recording.BlindSpot{What: "some changes of " + of, Why: why}))
		}
		said = true
	}
	for hour, rows := int64(0), 0; ; {
		var size int
		var from unix.Sockaddr
		var err error
		if raw.Read(func(fd uintptr) bool {
			size, from, err = unix.Recvfrom(int(fd), buf, 0)
			return !errors.Is(err, unix.EAGAIN)
		}) != nil {
			return
		}
		if errors.Is(err, unix.ENOBUFS) {
			leftOut("the kernel had no room for more that came at once")
		}
		if sender, ok := from.(*unix.SockaddrNetlink); err != nil || !ok || sender.Pid != 0 {
			continue // not from the kernel
		}
		if now := c.Now() / networkHour; now != hour {
			hour, rows = now, 0
		}
		var last recording.NetworkChangeDetail
		for _, d := range networkChanges(buf[:size]) {
			if d == last {
				continue
			}
			last = d
			if rows++; rows > networkMost {
				leftOut(fmt.Sprintf("at most %d in an hour are recorded", networkMost))
				break
			}
			row(recording.KindNetworkChange, recording.Detail(d))
		}
	}
}

// networkChanges reads the messages of a datagram. What it does not know is skipped.
func networkChanges(b []byte) (out []recording.NetworkChangeDetail) {
	for len(b) >= unix.SizeofNlMsghdr {
		size, kind := int(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint16(b[4:])
		if size < unix.SizeofNlMsghdr || size > len(b) {
			break
		}
		if d, ok := networkChange(kind, b[unix.SizeofNlMsghdr:size]); ok {
			out = append(out, d)
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return out
}

func networkChange(kind uint16, body []byte) (d recording.NetworkChangeDetail, ok bool) {
	switch kind {
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		d.What = "route"
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		d.What = "routing rule"
	case unix.RTM_NEWQDISC, unix.RTM_DELQDISC:
		d.What = "queueing discipline"
	case newGeneration:
		return recording.NetworkChangeDetail{What: "nftables rules", How: "changed", By: generationBy(body)}, true
	default:
		return d, false
	}
	d.How = "added"
	if kind == unix.RTM_DELROUTE || kind == unix.RTM_DELRULE || kind == unix.RTM_DELQDISC {
		d.How = "removed"
	}
	return d, true
}

// generationBy is the process that changed nftables, "nft[812]"; empty where the kernel does not say.
func generationBy(body []byte) string {
	pid, name := uint32(0), ""
	for b := body[min(sizeOfNFGen, len(body)):]; len(b) >= 4; {
		size, attribute := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if size < 4 || size > len(b) {
			break
		}
		switch value := b[4:size]; {
		case attribute == generationPID && len(value) == 4:
			pid = binary.BigEndian.Uint32(value)
		case attribute == generationName:
			name, _, _ = strings.Cut(string(value), "\x00")
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	if pid == 0 || name == "" {
		return ""
	}
	return fmt.Sprintf("%s[%d]", strings.ToValidUTF8(name, "?"), pid)
}
