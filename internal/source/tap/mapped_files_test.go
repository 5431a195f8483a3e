//go:build linux

package tap

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"slowpath/internal/source/host"
	"slowpath/internal/source/hostfs"
)

func TestOpenFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "a\x1bfile"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if file, _ := openFile(host.Root{}, os.Getpid(), int(f.Fd())); file != "a?file" {
		t.Errorf("it is called %q", file)
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
	for what, fd := range map[string]int{
		"removed": int(f.Fd()), "a socket": int(sock.Fd()), "not open": 1 << 20,
		"none": -1,
	} {
		if file, device := openFile(host.Root{}, os.Getpid(), fd); file != "" || device != "" {
			t.Errorf("%s: %q on %q", what, file, device)
		}
	}
}

// TestMappedFilesAreBounded: of a process with more mappings than are read, nothing is searched, and the error says so.
func TestMappedFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	maps := filepath.Join(dir, "proc/7/maps")
	if err := os.MkdirAll(filepath.Dir(maps), 0o700); err != nil {
		t.Fatal(err)
	}
	line := "7f0000000000-7f0000001000 r-xp 00000000 08:01 1 /usr/lib/libssl.so.3\n"
	if err := os.WriteFile(maps, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	files := hostfs.Root{Dir: dir}
	all := func(string) bool { return true }
	want := filepath.Join(dir, "proc/7/root/usr/lib/libssl.so.3")
	if got, err := mappedFiles(files, 7, all); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Truncate(maps, hostfs.MaxFile+1); err != nil {
		t.Fatal(err)
	}
	if got, err := mappedFiles(files, 7, all); !errors.Is(err, hostfs.ErrTooLarge) {
		t.Errorf("%q, %v", got, err)
	}
}
