package sniffer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/gopacket/gopacket/afpacket"
	"golang.org/x/sys/unix"
)

// The kernel's buffer: 32 MiB, of which each block is handed over when it is full or this time has passed. A packet
// must fit into a block.
const (
	blockBytes = 1 << 20
	blocks     = 32
	handOver   = 100 * time.Millisecond
)

// Capture captures until the context ends. The result is also valid with an error: what was captured until then is in
// its files. Errors match ErrNoInterface, ErrRights and ErrDown, or are a *WriteError.
func Capture(ctx context.Context, o Options) (r Result, err error) {
	if err := o.Files.free(); err != nil {
		return r, err
	}
	s, err := open(o)
	if err != nil {
		return r, err
	}
	defer s.handle.Close()
	s.files.Files, s.files.dropped = o.Files, s.countDropped
	s.files.about.Application, s.files.link = o.Program, link(o.Interface, o.Filter, o.SnapBytes)
	if err := s.files.next(); err != nil {
		var w *WriteError // nothing was captured
		if errors.As(err, &w) {
			err = w.err
		}
		return r, err
	}
	o.Ready()
	err = s.run(ctx)
	if closed := s.files.close(); err == nil {
		err = closed
	}
	return Result{
		Packets: s.files.packets, Dropped: s.files.told, Files: s.files.paths, Removed: s.files.removed,
		For: time.Since(s.since),
	}, err
}

// socket is a packet socket and its ring of files.
type socket struct {
	handle  *afpacket.TPacket
	files   writer
	since   time.Time // packets before were not filtered
	dropped int64
}

func open(o Options) (*socket, error) {
	options := []any{
		// Packets from their IP header on: links of any kind are the same then.
		afpacket.SocketDgram, afpacket.TPacketVersion3, afpacket.OptBlockSize(blockBytes),
		afpacket.OptFrameSize(unix.Getpagesize()), afpacket.OptNumBlocks(blocks), afpacket.OptBlockTimeout(handOver),
		afpacket.OptPollTimeout(handOver),
	}
	loopback := 0
	if o.Interface == Any {
		loopback = loopbackIndex()
	} else {
		in, err := net.InterfaceByName(o.Interface)
		if err != nil {
			return nil, fmt.Errorf("%w: %q; there are %s", ErrNoInterface, o.Interface, interfaceNames())
		}
		if in.Flags&net.FlagUp == 0 {
			return nil, fmt.Errorf("the interface %s is down: ip link set %s up", in.Name, in.Name)
		}
		if in.Flags&net.FlagLoopback != 0 {
			loopback = in.Index
		}
		options = append(options, afpacket.OptInterface(o.Interface))
	}
	program, err := filter(o.Servers, loopback, o.SnapBytes)
	if err != nil {
		return nil, err
	}
	h, err := afpacket.NewTPacket(options...)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return nil, ErrRights
	}
	if err != nil {
		return nil, fmt.Errorf("opening a packet socket: %w", err)
	}
	if err := errors.Join(h.SetBPF(program), h.InitSocketStats()); err != nil {
		h.Close()
		return nil, fmt.Errorf("setting the filter of the packet socket: %w", err)
	}
	return &socket{handle: h, since: time.Now()}, nil
}

// run writes packets until the context ends, and then those that the kernel has collected by then.
func (s *socket) run(ctx context.Context) error {
	var until time.Time // of packets
	for {
		if until.IsZero() && ctx.Err() != nil {
			until = time.Now()
		}
		data, ci, err := s.handle.ZeroCopyReadPacketData()
		switch {
		case errors.Is(err, afpacket.ErrTimeout):
			if !until.IsZero() && time.Since(until) > 2*handOver {
				return nil
			}
			if err := s.files.spill(); err != nil {
				return err
			}
			continue
		case errors.Is(err, afpacket.ErrPoll):
			return ErrDown
		case err != nil:
			return fmt.Errorf("reading packets: %w", err)
		case !until.IsZero() && ci.Timestamp.After(until):
			return nil
		case ci.Timestamp.Before(s.since): // came before the filter
			continue
		}
		if err := s.files.packet(ci, data); err != nil {
			return err
		}
	}
}

// countDropped is how many packets the kernel has dropped.
func (s *socket) countDropped() int64 {
	if _, stats, err := s.handle.SocketStats(); err == nil {
		s.dropped = int64(stats.Drops())
	}
	return s.dropped
}

func loopbackIndex() int {
	all, _ := net.Interfaces()
	for _, in := range all {
		if in.Flags&net.FlagLoopback != 0 {
			return in.Index
		}
	}
	return 0
}

// interfaceNames are those that are there, for people.
func interfaceNames() string {
	all, _ := net.Interfaces()
	text := Any
	for _, in := range all[:min(len(all), 20)] {
		text += ", " + in.Name
	}
	return text
}
