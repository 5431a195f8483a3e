//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/source/capture/sniffer"
	"slowpath/internal/wire/target"
)

// captureFlags are the flags of capture.
type captureFlags struct {
	on       string
	ports    []int
	duration time.Duration
	snap     int
	files    sniffer.Files
}

const (
	captureFiles     = 10
	captureFileBytes = int64(100e6)
	// leastFileBytes of a file of the ring: less is too few packets to follow anything.
	leastFileBytes = int64(1e5)
	// leastSnap has room for the headers and the command.
	leastSnap = 96
)

func (a *app) capture() *cobra.Command {
	var f captureFlags
	c := &cobra.Command{
		Use:   "capture [TARGET...] -o FILE",
		Short: shortCapture,
		Long: `capture writes the TCP packets of servers to files that doctor, report, trace, tcpdump and Wireshark
read (pcapng). It keeps the newest: when the last file of the ring is full, the oldest is removed. A filter in the
kernel chooses the packets: those from and to each TARGET (HOST:PORT), or without one those of port 6379.

Ctrl-C ends it; the files are whole then. Should it be killed, a file may lack the last second.

The files hold what was sent: keys, values and passwords (AUTH). Only their owner can read them. --snaplen cuts
packets, and with them long values; passwords are short, and stay.`,
		Example: `  slowpath capture -o redis.pcapng
  slowpath capture 10.0.0.5:6379 -i eth0 --for 10m -o redis.pcapng
  slowpath doctor redis-*.pcapng`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.capturePackets(cmd, &f, args) },
	}
	fl := c.Flags()
	fl.StringVarP(&f.files.Path, "output", "o", "", "`file` to write: redis.pcapng makes redis-00001.pcapng and so "+
		"on, which must not exist")
	fl.StringVarP(&f.on, "interface", "i", sniffer.Any, "`interface` to capture on: any for all")
	fl.IntSliceVarP(&f.ports, "port", "p", []int{target.DefaultPort}, "`ports` of servers, where no TARGET is given")
	fl.DurationVar(&f.duration, "for", 0, "how long to capture (0: until Ctrl-C)")
	fl.IntVar(&f.files.Number, "ring", captureFiles, "`number` of files: the oldest is removed when there are more")
	fl.Int64Var(&f.files.FileBytes, "file-size", captureFileBytes, "`bytes` of a file, after which the next is begun")
	fl.IntVar(&f.snap, "snaplen", sniffer.MaxPacket, "`bytes` of each packet to keep; what is cut can hide slow calls")
	return c
}

// check refuses what makes no sense.
func (f *captureFlags) check(args []string, portGiven bool) error {
	switch {
	case f.files.Path == "":
		return cli.Usagef("capture needs a file: add -o FILE.pcapng")
	case f.files.Number < 2:
		return cli.Usagef("--ring %d: give 2 files or more, since the oldest is removed", f.files.Number)
	case f.files.FileBytes < leastFileBytes:
		return cli.Usagef("--file-size %d: give %d bytes or more", f.files.FileBytes, leastFileBytes)
	case f.snap < leastSnap || f.snap > sniffer.MaxPacket:
		return cli.Usagef("--snaplen %d: give %d to %d bytes", f.snap, leastSnap, sniffer.MaxPacket)
	case portGiven && len(args) > 0:
		return cli.Usagef("--port has no effect where a TARGET is given: write HOST:PORT")
	}
	return cli.NotNegative("for", f.duration)
}

// servers are the addresses whose packets are captured, and the same in words.
func (f *captureFlags) servers(ctx context.Context, args []string) (list []netip.AddrPort, words string, err error) {
	var texts []string
	for _, arg := range args {
		t, err := target.Parse(arg)
		if err != nil {
			return nil, "", cli.Usage(err)
		}
		if t.Network != "tcp" {
			return nil, "", cli.Usagef("%s: what is sent over a unix socket are no packets: slowpath trace %s", t, t)
		}
		addresses, err := target.Resolve(ctx, t)
		if err != nil {
			return nil, "", err
		}
		for _, at := range addresses {
			list = append(list, netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
			texts = append(texts, fmt.Sprintf("host %s and tcp port %d", at.Addr().Unmap(), at.Port()))
		}
	}
	for _, p := range f.ports {
		if p < 1 || p > 65535 {
			return nil, "", cli.Usagef("--port %d: give a port from 1 to 65535", p)
		}
		if len(args) == 0 {
			list = append(list, netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(p)))
			texts = append(texts, fmt.Sprintf("tcp port %d", p))
		}
	}
	return list, strings.Join(texts, " or "), nil
}

// capturePackets captures until the end, and says what is there then.
func (a *app) capturePackets(cmd *cobra.Command, f *captureFlags, args []string) error {
	if err := f.check(args, cmd.Flags().Changed("port")); err != nil {
		return err
	}
	ctx := cmd.Context()
	servers, words, err := f.servers(ctx, args)
	if err != nil {
		return err
	}
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	first := f.files.FileName(1)
	a.OnInterrupt("the files are completed")
	r, err := sniffer.Capture(ctx, sniffer.Options{
		Interface: f.on, Servers: servers, SnapBytes: f.snap, Files: f.files, Program: "slowpath " + version,
		Filter: words, Ready: func() {
			a.dropBeside(first)
			a.notes([]string{f.began(words)})
			a.Progress("capturing; Ctrl-C ends it")
		},
	})
	if err == nil || r.Packets > 0 {
		a.notes(f.ended(r, words))
	}
	return explainCapture(err)
}

// explainCapture gives an error its exit code.
func explainCapture(err error) error {
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
func (f *captureFlags) began(words string) string {
	until := "until Ctrl-C"
	if f.duration > 0 {
		until = "for " + f.duration.String()
	}
	return fmt.Sprintf("capturing %s on %s %s: the newest %s at most, in %d files from %s on; they hold what is sent, "+
		"passwords too", words, f.on, until, format.Bytes(int64(f.files.Number)*f.files.FileBytes), f.files.Number,
		f.files.FileName(1))
}

// ended says what was captured, and what to do with it.
func (f *captureFlags) ended(r sniffer.Result, words string) (notes []string) {
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
			words, f.on))
	}
	name := format.Shell(r.Files[0])
	if len(r.Files) > 1 {
		dir, base := filepath.Split(f.files.Pattern())
		stem, rest, _ := strings.Cut(base, "*")
		name = format.Shell(dir+stem) + "*" + rest
	}
	return append(notes, "for the verdict: slowpath doctor "+name)
}
