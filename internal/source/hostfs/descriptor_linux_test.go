package hostfs

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDescriptorOf(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "a\x1bfile"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if d := DescriptorOf(Root{}, os.Getpid(), int(f.Fd())); d.File != "a?file" || d.Other != "" {
		t.Errorf("it is called %+v", d)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenTCP("tcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sock, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fifo := filepath.Join(t.TempDir(), "log")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	named, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for fd, want := range map[int]Descriptor{
		int(f.Fd()): {}, 1 << 20: {}, -1: {}, int(sock.Fd()): {Other: "a socket"}, int(w.Fd()): {Other: "a pipe"},
		int(named.Fd()): {Other: "the FIFO log"}, int(null.Fd()): {Other: "the device null"},
	} {
		if got := DescriptorOf(Root{}, os.Getpid(), fd); got != want {
			t.Errorf("%d: %+v, want %+v", fd, got, want)
		}
	}
}
