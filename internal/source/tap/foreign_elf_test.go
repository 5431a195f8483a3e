//go:build linux

package tap

import (
	"debug/elf"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// readAll reads all that the tap reads of a program.
func readAll(path string) error {
	return withELF(path, func(f *elf.File, name string) error {
		probesOf(f)
		findCollector(f)
		if _, err := places(f, roleClient); err != nil {
			return err
		}
		_, err := os.Stat(name)
		return err
	})
}

// TestForeignELF: what a process puts where a library was is an error, and never waited for.
func TestForeignELF(t *testing.T) {
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		make func(path string) error
		good bool
	}{
		{"a program", func(path string) error { return os.WriteFile(path, own, 0o600) }, true},
		{"a link to a program", func(path string) error { return os.Symlink("/proc/self/exe", path) }, true},
		{"nothing", func(string) error { return nil }, false},
		{"a pipe that nobody writes", func(path string) error { return syscall.Mkfifo(path, 0o600) }, false},
		{"a device without end", func(path string) error { return os.Symlink("/dev/zero", path) }, false},
		{"a directory", func(path string) error { return os.Mkdir(path, 0o700) }, false},
		{"no program", func(path string) error {
			return os.WriteFile(path, []byte("\x7fELF and no program"), 0o600)
		}, false},
		{"a program without end", func(path string) error {
			if err := os.WriteFile(path, own, 0o600); err != nil {
				return err
			}
			return os.Truncate(path, maxELF+1)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "libssl.so.3")
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			result := make(chan error, 1)
			go func() { result <- readAll(path) }()
			select {
			case err := <-result:
				if (err == nil) != c.good {
					t.Errorf("error %v", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("it waits")
			}
		})
	}
}

// TestDamagedELF: a program of which bytes are changed is read, or is an error.
func TestDamagedELF(t *testing.T) {
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, own, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	headers := []int64{0, int64(len(own)) - 4096} // linkers put them at the beginning, or at the end
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		at := make([]int64, 1+r.IntN(8))
		for i := range at {
			at[i] = max(headers[r.IntN(2)]+r.Int64N(4096), 16) // what is no ELF file is not read
			if _, err := file.WriteAt([]byte{byte(r.Uint32())}, at[i]); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		_ = readAll(path) // must return
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("seed %d: it took %v", seed, took)
		}
		for _, i := range at {
			if _, err := file.WriteAt(own[i:i+1], i); err != nil {
				t.Fatal(err)
			}
		}
	}
}
