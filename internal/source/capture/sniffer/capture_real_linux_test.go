package sniffer_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/house/needs"

	"github.com/gopacket/gopacket/pcapgo"

	"slowpath/internal/source/capture/sniffer"
)

// talk sends messages over loopback to a server of its own until the context ends, and each comes back.
type talk struct {
	t      *testing.T
	server net.Listener
	conn   net.Conn
}

func newTalk(t *testing.T) *talk {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &talk{t, l, conn}
}

func (k *talk) address() netip.AddrPort { return netip.MustParseAddrPort(k.server.Addr().String()) }

// say sends messages and waits for each to come back.
func (k *talk) say(many, size int) {
	k.t.Helper()
	_ = k.conn.SetDeadline(time.Now().Add(time.Minute))
	b := make([]byte, size)
	for range many {
		if _, err := k.conn.Write(b); err != nil {
			k.t.Fatal(err)
		}
		if _, err := io.ReadFull(k.conn, b); err != nil {
			k.t.Fatal(err)
		}
	}
}

// capture captures what is said meanwhile.
func (k *talk) capture(o sniffer.Options, meanwhile func()) (sniffer.Result, error) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(k.t.Context())
	defer cancel()
	ready := make(chan struct{})
	o.Ready = func() { close(ready) }
	o.Servers = []netip.AddrPort{k.address()}
	if o.SnapBytes == 0 {
		o.SnapBytes = sniffer.MaxPacket
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		select {
		case <-ready:
			meanwhile()
		case <-ctx.Done():
		}
		cancel()
	}()
	r, err := sniffer.Capture(ctx, o)
	cancel()
	<-said
	return r, err
}

// read counts the packets of a file, which must be whole, and their bytes.
func read(t *testing.T, path string) (packets, bytes, cut int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for {
		data, ci, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return packets, bytes, cut
		}
		if err != nil {
			t.Fatalf("%s: after %d packets: %v", path, packets, err)
		}
		packets, bytes = packets+1, bytes+len(data)
		if ci.Length > ci.CaptureLength {
			cut++
		}
	}
}

// TestCapture: each packet of a connection over loopback is captured once, on lo and on all interfaces, and nothing of
// another connection. Others cannot read the file.
func TestCapture(t *testing.T) {
	needs.Real(t, needs.Root)
	for _, on := range []string{"lo", sniffer.Any} {
		t.Run(on, func(t *testing.T) {
			k, other := newTalk(t), newTalk(t)
			files := sniffer.Files{Path: filepath.Join(t.TempDir(), "a.pcapng"), Number: 2, FileBytes: 1 << 30}
			const many, size = 500, 100
			r, err := k.capture(sniffer.Options{Interface: on, Files: files}, func() {
				other.say(many, size)
				k.say(many, size)
			})
			if err != nil || len(r.Files) != 1 || r.Dropped != 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			packets, bytes, cut := read(t, r.Files[0])
			const header = 20 + 20 + 12 // IP, TCP, timestamps
			if data := bytes - header*packets; data != 2*many*size || int64(packets) != r.Packets || cut > 0 {
				t.Errorf("%d bytes of data in %d packets, want %d; %d are cut; %+v", data, packets, 2*many*size, cut, r)
			}
			if info, err := os.Stat(r.Files[0]); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}

// TestRing: the newest files stay, each is whole and as large as it may be, and packets are cut where that is wanted.
func TestRing(t *testing.T) {
	needs.Real(t, needs.Root)
	k := newTalk(t)
	dir := t.TempDir()
	const each, snap = 100_000, 120
	files := sniffer.Files{Path: filepath.Join(dir, "a.pcap"), Number: 3, FileBytes: each}
	r, err := k.capture(sniffer.Options{Interface: "lo", Files: files, SnapBytes: snap}, func() { k.say(2000, 1000) })
	if err != nil || len(r.Files) != 3 || r.Removed < 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	there, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || strings.Join(there, " ") != strings.Join(r.Files, " ") {
		t.Errorf("%v are there, want %v (%v)", there, r.Files, err)
	}
	for i, path := range there {
		packets, bytes, cut := read(t, path)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if size := info.Size(); size > each+1000 || size < each && i+1 < len(there) {
			t.Errorf("%s has %d bytes", path, size)
		}
		if packets == 0 || bytes > packets*snap || cut == 0 {
			t.Errorf("%s: %d packets with %d bytes, %d cut", path, packets, bytes, cut)
		}
	}
	if _, err := k.capture(sniffer.Options{Interface: "lo", Files: files}, func() {}); err == nil ||
		!strings.Contains(err.Error(), "is there already") {
		t.Errorf("a second capture with this name: %v", err)
	}
}

// TestFullDiskOfCapture: what was captured before the disk was full is in whole files.
func TestFullDiskOfCapture(t *testing.T) {
	needs.Real(t, needs.Root)
	k := newTalk(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	files := sniffer.Files{Path: filepath.Join(dir, "a.pcapng"), Number: 9, FileBytes: 400_000}
	r, err := k.capture(sniffer.Options{Interface: "lo", Files: files}, func() { k.say(2000, 1000) })
	var full *sniffer.WriteError
	if !errors.As(err, &full) || !strings.Contains(err.Error(), "there is no space for more") || len(r.Files) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	all := 0
	for _, path := range r.Files {
		packets, _, _ := read(t, path)
		all += packets
	}
	if all == 0 || int64(all) != r.Packets {
		t.Errorf("%d packets can be read; %+v", all, r)
	}
	_ = os.WriteFile(filepath.Join(dir, "rest"), make([]byte, 1<<20), 0o600) // as much as fits
	files.Path = filepath.Join(dir, "b.pcapng")
	_, err = k.capture(sniffer.Options{Interface: "lo", Files: files}, func() { k.say(1, 10) })
	if left, _ := filepath.Glob(filepath.Join(dir, "b*")); !errors.Is(err, syscall.ENOSPC) || len(left) > 0 {
		t.Errorf("a capture on a full disk: %v; it leaves %v", err, left)
	}
}

// TestLinkInTheWay: a link where a file of the ring is to be is not followed.
func TestLinkInTheWay(t *testing.T) {
	needs.Real(t, needs.Root)
	k := newTalk(t)
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := sniffer.Files{Path: filepath.Join(dir, "a.pcapng"), Number: 9, FileBytes: 100_000}
	r, err := k.capture(sniffer.Options{Interface: "lo", Files: files}, func() {
		if err := os.Symlink(victim, files.FileName(2)); err != nil {
			t.Error(err)
		}
		k.say(1000, 1000)
	})
	text, _ := os.ReadFile(victim)
	if err == nil || string(text) != "mine" || len(r.Files) != 1 {
		t.Errorf("%v; the file has %q; %+v", err, text, r)
	}
	if packets, _, _ := read(t, r.Files[0]); int64(packets) != r.Packets {
		t.Errorf("%d packets can be read; %+v", packets, r)
	}
}

// TestNotCaptured: what cannot be captured says why, and leaves no file.
func TestNotCaptured(t *testing.T) {
	needs.Real(t, needs.Root)
	k := newTalk(t)
	for _, c := range []struct {
		on, dir string
		want    error
		say     string
	}{
		{"nope", "", sniffer.ErrNoInterface, "there are any"},
		{"lo", "missing", os.ErrNotExist, "no such file or directory"},
	} {
		dir := t.TempDir()
		files := sniffer.Files{Path: filepath.Join(dir, c.dir, "a.pcapng"), Number: 2, FileBytes: 1e6}
		_, err := k.capture(sniffer.Options{Interface: c.on, Files: files}, func() {})
		left, _ := os.ReadDir(dir)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) || len(left) > 0 {
			t.Errorf("%s: %v, %d files are left", c.on, err, len(left))
		}
	}
}
