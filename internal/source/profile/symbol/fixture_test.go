package symbol

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"slowpath/internal/source/hostfs"
)

// TestJITMapOfAProcess: the map of a just-in-time compiler is found by the process' own PID in its own /tmp. A link and
// a pipe in its place are not opened.
func TestJITMapOfAProcess(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("proc/77/maps", "7f0000000000-7f0000010000 rwxp 00000000 00:00 0\n")
	write("proc/77/status", "Name:\tnode\nNSpid:\t77\t5\n")
	write("proc/77/root/tmp/elsewhere", "7f0000000000 40 hot\n")
	perfMap := filepath.Join(dir, "proc/77/root/tmp/perf-5.map")
	for _, c := range []struct {
		what, function string
		make           func() error
	}{
		{"no map", "[jit]", func() error { return nil }},
		{"a pipe", "[jit]", func() error { return syscall.Mkfifo(perfMap, 0o644) }},
		{"a link", "[jit]", func() error { return os.Symlink("elsewhere", perfMap) }},
		{"a file", "hot", func() error { return os.WriteFile(perfMap, []byte("7f0000000000 40 hot\n"), 0o644) }},
	} {
		if err := c.make(); err != nil {
			t.Fatal(err)
		}
		p, err := OpenProcess(hostfs.Root{Dir: dir}, 77, Files{})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Function(0x7f0000000010); got != c.function {
			t.Errorf("%s: %s, want %s", c.what, got, c.function)
		}
		_ = os.Remove(perfMap) // which the first case has not
	}
}

// TestManyMappings: of a process with more mappings than are kept, or with more text about them than is read, the first
// are known, and it is said that others are not.
func TestManyMappings(t *testing.T) {
	dir := t.TempDir()
	maps := filepath.Join(dir, "proc/77/maps")
	if err := os.MkdirAll(filepath.Dir(maps), 0o755); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", 60_000)
	for _, c := range []struct {
		what        string
		code, other int // mappings with code; and then others, with long names
		want        error
	}{
		{"as many as are kept", maxMappings, 0, nil},
		{"one more", maxMappings + 1, 0, errTooLarge},
		{"long names", 1, hostfs.MaxFile/len(long) + 1, errTooLarge},
	} {
		var text strings.Builder
		for i := range c.code {
			fmt.Fprintf(&text, "%x-%x r-xp 00000000 00:00 0\n", 0x1000*(i+1), 0x1000*(i+2))
		}
		for i := range c.other {
			fmt.Fprintf(&text, "%x-%x r--p 00000000 08:01 1 /%s\n", 0x1000*(i+c.code+1), 0x1000*(i+c.code+2), long)
		}
		if err := os.WriteFile(maps, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := OpenProcess(hostfs.Root{Dir: dir}, 77, Files{})
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if !errors.Is(p.LeftOut(), c.want) || !p.Mapped(0x1000) || len(p.maps) != min(c.code, maxMappings) {
			t.Errorf("%s: %d mappings, %v", c.what, len(p.maps), p.LeftOut())
		}
	}
}
