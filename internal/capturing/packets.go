//go:build linux

// Package capturing captures the packets that a command line asks for: of which servers, what is said before and after.
package capturing

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/source"
	"slowpath/internal/source/capture/sniffer"
	"slowpath/internal/wire/target"
)

// Options are the flags of capture.
type Options struct {
	sniffer.Options
	Ports    []int // of servers, where no address is given
	Duration time.Duration
}

const (
	// leastFileBytes of a file of the ring: less is too few packets to follow anything.
	leastFileBytes = int64(1e5)
	// leastSnap has room for the headers and the command.
	leastSnap = 96
)

// Check refuses what makes no sense.
func (f *Options) Check(args []string, portGiven bool) error {
	switch {
	case f.Files.Path == "":
		return cli.Usagef("capture needs a file: add -o FILE.pcapng")
	case f.Files.Number < 2:
		return cli.Usagef("--ring %d: give 2 files or more, since the oldest is removed", f.Files.Number)
	case f.Files.FileBytes < leastFileBytes:
		return cli.Usagef("--file-size %d: give %d bytes or more", f.Files.FileBytes, leastFileBytes)
	case f.SnapBytes < leastSnap || f.SnapBytes > sniffer.MaxPacket:
		return cli.Usagef("--snaplen %d: give %d to %d bytes", f.SnapBytes, leastSnap, sniffer.MaxPacket)
	case portGiven && len(args) > 0:
		return cli.Usagef("--port has no effect where a TARGET is given: write HOST:PORT")
	}
	return cli.NotNegative("for", f.Duration)
}

// servers sets the addresses whose packets are captured, and the same in words.
func (f *Options) servers(ctx context.Context, args []string) error {
	var texts []string
	for _, arg := range args {
		t, err := target.Parse(arg)
		if err != nil {
			return cli.Usage(err)
		}
		if t.Network != "tcp" {
			return cli.Usagef("%s: what is sent over a unix socket are no packets: slowpath trace %s", t, t)
		}
		addresses, err := target.Resolve(ctx, t)
		if err != nil {
			return err
		}
		for _, at := range addresses {
			f.Servers = append(f.Servers, netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
			texts = append(texts, fmt.Sprintf("host %s and tcp port %d", at.Addr().Unmap(), at.Port()))
		}
	}
	for _, p := range f.Ports {
		if p < 1 || p > 65535 {
			return cli.Usagef("--port %d: give a port from 1 to 65535", p)
		}
		if len(args) == 0 {
			f.Servers = append(f.Servers, netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(p)))
			texts = append(texts, fmt.Sprintf("tcp port %d", p))
		}
	}
	f.Filter = strings.Join(texts, " or ")
	return nil
}

// Run captures until the end, and says what is there then. drop is called once the first file is there, with its path.
func Run(ctx context.Context, a *cli.Program, f *Options, args []string, drop func(beside string)) error {
	if err := f.servers(ctx, args); err != nil {
		return err
	}
	ctx, cancel := source.Window(ctx, f.Duration)
	defer cancel()
	a.OnInterrupt("the files are completed")
	f.Program = "slowpath " + a.Version
	f.Ready = func() {
		drop(f.Files.FileName(1))
		a.Say(f.began())
		a.Progress("capturing; Ctrl-C ends it")
	}
	r, err := sniffer.Capture(ctx, f.Options)
	if err == nil || r.Packets > 0 {
		for _, n := range f.ended(r) {
			a.Say(n)
		}
	}
	return explained(err)
}

// explained is an error with its exit code.
func explained(err error) error {
	var write *sniffer.WriteError
	switch {
	case errors.Is(err, sniffer.ErrRights):
		return fmt.Errorf("%w, which is %w: run it as root", err, cli.ErrMissing)
	case errors.As(err, &write), errors.Is(err, sniffer.ErrDown), err == nil:
		return err
	}
	return cli.Usage(err)
}

// began says what is captured, and how much of it at most.
func (f *Options) began() string {
	until := "until Ctrl-C"
	if f.Duration > 0 {
		until = "for " + f.Duration.String()
	}
	return fmt.Sprintf("capturing %s on %s %s: the newest %s at most, in %d files from %s on; they hold what is sent, "+
		"passwords too", f.Filter, f.Interface, until, format.Bytes(int64(f.Files.Number)*f.Files.FileBytes),
		f.Files.Number, f.Files.FileName(1))
}

// ended says what was captured, and what to do with it.
func (f *Options) ended(r sniffer.Result) (notes []string) {
	text := fmt.Sprintf("captured %s in %s", format.Count(r.Packets, "packet"), r.For.Round(time.Millisecond))
	if r.Removed > 0 {
		text += fmt.Sprintf("; of these the newest are kept, in %d files: %s removed", len(r.Files),
			format.Count(r.Removed, "older file"))
	}
	notes = append(notes, text)
	if r.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("the kernel dropped %s, as the disk or this process was too slow: name a "+
			"TARGET, or an interface (-i)", format.Count(r.Dropped, "packet")))
	}
	if r.Packets == 0 {
		return append(notes, fmt.Sprintf("no packet matched (%s on %s): check the address, the port and the interface",
			f.Filter, f.Interface))
	}
	name := format.Shell(r.Files[0])
	if len(r.Files) > 1 {
		dir, base := filepath.Split(f.Files.Pattern())
		stem, rest, _ := strings.Cut(base, "*")
		name = format.Shell(dir+stem) + "*" + rest
	}
	return append(notes, "for the verdict: slowpath doctor "+name)
}
