package symbol

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"slowpath/internal/source/hostfs"
)

const someMaps = `55d0a0000000-55d0a0001000 r--p 00000000 fe:00 1234                       /usr/bin/redis check rdb
55d0a0001000-55d0a0101000 r-xp 00001000 fe:00 1234                       /usr/bin/redis check rdb (deleted)
7f0000000000-7f0000010000 rwxp 00000000 00:00 0
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
`

func TestParseMaps(t *testing.T) {
	got, err := parseMaps(strings.NewReader(someMaps))
	want := []Mapping{
		{0x55d0a0001000, 0x55d0a0101000, 0x1000, "fe:00:1234", "/usr/bin/redis check rdb"},
		{0x7f0000000000, 0x7f0000010000, 0, "", ""},
		{0x7ffd00000000, 0x7ffd00002000, 0, "", "[vdso]"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"x", "1-2 r-xp 0 0:0", "g-h r-xp 0 0:0 1 /a"} {
		if _, err := parseMaps(strings.NewReader(text)); !errors.Is(err, ErrMaps) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseMaps(f *testing.F) {
	f.Add(someMaps)
	f.Fuzz(func(t *testing.T, text string) {
		maps, err := parseMaps(strings.NewReader(text))
		if err != nil {
			return
		}
		for i, m := range maps {
			if m.Start >= m.End || i > 0 && m.Start < maps[i-1].End {
				t.Errorf("%+v", maps)
			}
		}
	})
}

func TestJIT(t *testing.T) {
	table, err := parseJIT(strings.NewReader("1000 20 LazyCompile:~old /srv/a.js:1\n1000 40 LazyCompile:*hot /srv/a " +
		"b.js:1\n0x2000 10 Builtin:x\nbad\n3000 zz half"))
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[uint64]string{
		0xfff: "", 0x1000: "LazyCompile:*hot /srv/a b.js:1",
		0x103f: "LazyCompile:*hot /srv/a b.js:1", 0x1040: "", 0x2008: "Builtin:x", 0x3000: "",
	} {
		if f, ok := table.find(at); ok != (want != "") || ok && f.name != want {
			t.Errorf("%#x: %q, %v", at, f.name, ok)
		}
	}
}

func FuzzJIT(f *testing.F) {
	f.Add("1000 20 a\n1010 20 b\n", uint64(0x1015))
	f.Fuzz(func(t *testing.T, text string, at uint64) {
		table, err := parseJIT(strings.NewReader(text))
		if err != nil {
			t.Fatal(err) // a string does not fail
		}
		if fn, ok := table.find(at); ok && (at < fn.start || fn.name == "" || len(fn.name) > maxJITName) {
			t.Errorf("%+v at %#x", fn, at)
		}
	})
}

const someKernel = `ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81001000 t helper.isra.0
ffffffff81002000 D data
ffffffffc0001000 t own	[module]
`

func TestKernel(t *testing.T) {
	k, err := parseKernel(strings.NewReader(someKernel))
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[uint64]string{
		0xffffffff80ffffff: "?", 0xffffffff81000010: "startup_64",
		0xffffffff81001000: "helper.isra.0", 0xffffffff81003000: "helper.isra.0", 0xffffffffc0001010: "own",
	} {
		if got := k.Function(at); got != want {
			t.Errorf("%#x: %s, want %s", at, got, want)
		}
	}
	if _, err := parseKernel(strings.NewReader("0000000000000000 T _text\n")); !errors.Is(err, ErrHidden) {
		t.Error(err)
	}
}

func FuzzKernel(f *testing.F) {
	f.Add(someKernel, uint64(0xffffffff81000010))
	f.Fuzz(func(t *testing.T, text string, at uint64) {
		if k, err := parseKernel(strings.NewReader(text)); err == nil && k.Function(at) == "" {
			t.Errorf("no name at %#x of %q", at, text)
		}
	})
}

// self is this program as a file of its own.
func self(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip(err)
	}
	return b
}

// TestOwnFunctions: functions of this program are found by its own table, without symbols.
func TestOwnFunctions(t *testing.T) {
	p, err := OpenProcess(hostfs.Root{}, os.Getpid(), Files{})
	if err != nil {
		t.Skip(err)
	}
	pc := uint64(reflect.ValueOf(TestOwnFunctions).Pointer())
	if name := p.Function(pc + 1); !p.Mapped(pc) || name != "slowpath/internal/source/profile/symbol.TestOwnFunctions" {
		t.Errorf("%s at %#x", name, pc)
	}
	if name := p.Function(1); name != "?" || p.Mapped(1) {
		t.Errorf("%s at 1", name)
	}
	if f := p.Program(); f == nil || f.Stripped {
		t.Errorf("%+v", f)
	}
	if _, err := OpenProcess(hostfs.Root{}, 1<<30, Files{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// FuzzFile: a process can map any file.
func FuzzFile(f *testing.F) {
	f.Add([]byte("\x7fELF"))
	if r, ok := vdso(hostfs.Root{}); ok { // the smallest that there is
		b, err := io.ReadAll(io.NewSectionReader(r, 0, 1<<20))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := openFile(bytes.NewReader(b), "x", nil)
		if err != nil {
			if !errors.Is(err, ErrNoELF) {
				t.Error(err)
			}
			return
		}
		if at, ok := file.address(64); ok {
			file.function(at)
			file.rule(at, true)
		}
		file.rule(0x1000, false)
	})
}

func TestRegisters(t *testing.T) {
	if r, err := RegistersOf(elf.EM_X86_64); err != nil || r.Stack != 7 || r.Place != 16 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := RegistersOf(elf.EM_386); err == nil {
		t.Error("32 bits")
	}
	if f, err := openFile(bytes.NewReader(self(t)), "self", nil); err != nil || len(f.loads) == 0 {
		t.Errorf("%+v, %v", f, err)
	}
}
