package host

import (
	"os"
	"path/filepath"
	"testing"
)

// link adds a symbolic link to a fixture.
func link(t *testing.T, fs Root, name, to string) {
	t.Helper()
	name = filepath.Join(fs.Root.Dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// TestLocateBehindNAT: a published port leads to a server in another network namespace, whose end has another address.
func TestLocateBehindNAT(t *testing.T) {
	files := server("0::/\n")
	files["/proc/77/net/tcp"] = "  sl\n   0: 020011AC:18EB 0100000A:1388 01 00000000:00000000 00:00000000 00000000 " +
		"    0        0 12346 1 0\n"
	fs := tree(t, files)
	link(t, fs, "/proc/77/ns/net", "net:[1]")
	link(t, fs, "/proc/77/fd/7", "socket:[12346]")
	p, err := Locate(fs, Query{Network: "tcp", Local: "10.0.0.1:5000", Remote: "10.0.0.1:16379"})
	if err != nil || p.PID != 77 {
		t.Errorf("got %+v, %v", p, err)
	}
}
