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

// files has some files of a host, by name.
type files struct {
	FS
	named map[string]string
}

func (f files) ReadFile(name string) ([]byte, error) {
	text, ok := f.named[name]
	if !ok {
		return nil, os.ErrNotExist
	}
	return []byte(text), nil
}

// TestMayHang: what another host serves is not asked for more than its name.
func TestMayHang(t *testing.T) {
	const mounts = "21 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n" +
		"210 21 0:50 / /mnt/nfs-like rw - overlay overlay rw\n" +
		"35 21 0:44 / /mnt/audit rw - nfs4 10.0.0.9:/audit rw\n36 21 0:45 / /mnt/s3 rw - fuse.s3fs s3fs rw\n"
	for id, want := range map[string]bool{"21": false, "210": false, "35": true, "36": true, "2": true, "": true} {
		fs := files{named: map[string]string{
			"/proc/7/mountinfo": mounts,
			"/proc/7/fdinfo/3":  "pos:\t0\nflags:\t0100001\nmnt_id:\t" + id + "\nino:\t12\n",
		}}
		if got := mayHang(fs, 7, 3); got != want {
			t.Errorf("mount %q: %v", id, got)
		}
	}
	if !mayHang(files{}, 7, 3) {
		t.Error("of a file of which nothing is known it says that it does not hang")
	}
}
