package python

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/profile/interpreter"
	"slowpath/internal/source/profile/interpreter/memorytest"
)

// Places in the memory of made.
const (
	madeRuntime, madeInterpreter, madeState, madeOther = 0x10000, 0x11000, 0x12000, 0x12400
	madeCFrame, madeHeap, madeChunk                    = 0x13000, 0x14000, 0x15000
	madeCode, madeText, madeTables, madeEnd            = 0x18000, 0x1a000, 0x1c000, 0x20000
	madeTypes                                          = 0xf000 // code, text, bytes: the addresses alone matter
	madeTID                                            = 7
)

// made is the memory of a Python 3.11 with a thread, which runs what its test says, and another one.
type made struct {
	memorytest.Memory
	*process
	*interpreter.Process
}

func newMade() *made {
	m := &made{}
	m.Spans = []memorytest.Span{{At: madeRuntime, Bytes: make([]byte, madeEnd-madeRuntime)}}
	m.process = newProcess(&m.Memory, [5]uint64{madeRuntime, 0, madeTypes, madeTypes + 8, madeTypes + 16})
	m.Process = interpreter.NewProcess("3.11", m.process)
	m.layout = layout311
	m.Put(madeRuntime+40, madeInterpreter)
	m.Put(madeInterpreter+16, madeState)
	for i, state := range []uint64{madeState, madeOther} {
		m.Put(state+threadInterpreter, madeInterpreter)
		m.Put(state+m.layout.frame, madeCFrame+uint64(i)*0x100)
		m.Put(state+m.layout.nativeID, madeTID+uint64(i))
		m.Put(state+m.layout.chunk, madeChunk)
	}
	m.Put(madeState+threadNext, madeOther)
	m.Put(madeOther+threadPrevious, madeState)
	m.gilTo(madeOther, 1)
	return m
}

// gilTo has a thread state hold the GIL.
func (m *made) gilTo(state, locked uint64) {
	m.Put(madeRuntime+368, state)
	m.Put(madeRuntime+376, locked)
}

// code makes the i-th code object, which begins at line 10*i.
func (m *made) code(i uint64, name string) (at uint64) {
	at = madeCode + i*0x200
	text, table := madeText+i*0x100, madeTables+i*0x100
	m.Put(at+objectType, madeTypes)
	m.Put(at+m.layout.filename, text)
	m.Put(at+m.layout.qualname, text)
	m.Put(at+m.layout.lines, table)
	m.Put(at+m.layout.firstLine, 10*i)
	m.Put(text+objectType, madeTypes+8)
	m.Put(text+objectLength, uint64(len(name)))
	m.Put(text+stringState, 1<<2|1<<5|1<<6)
	m.PutText(text+m.layout.ascii, name)
	m.Put(table+objectType, madeTypes+16)
	m.Put(table+objectLength, 2)
	m.PutText(table+bytesData, string([]byte{1<<7 | 11<<3 | 7, 0})) // 8 units one line below the first
	return at
}

// frame makes one that calls no other yet.
func (m *made) frame(at, previous, code uint64, owner byte) {
	m.Put(at+m.layout.executable, code)
	m.Put(at+m.layout.previous, previous)
	m.Put(at+m.layout.instruction, code+m.layout.code+2)
	m.Spans[0].Bytes[at+m.layout.owner-madeRuntime] = owner
}

func (m *made) runs(frame uint64) { m.Put(madeCFrame+m.layout.currentFrame, frame) }

// read gives the functions of the thread.
func (m *made) read(t *testing.T) (functions string, s interpreter.Sample) {
	t.Helper()
	return memorytest.Functions(t, m.Process, madeTID)
}

// usual has inner, a generator on the heap, called by outer.
func (m *made) usual() (inner, outer, heap uint64) {
	outer, inner = m.code(1, "outer"), m.code(2, "inner")
	m.frame(madeChunk+0x20, 0, outer, 0)
	m.frame(madeHeap, madeChunk+0x20, inner, ownedByGenerator)
	m.runs(madeHeap)
	return inner, outer, madeHeap
}

// TestUsual: a generator that is called by a function, of a thread that waits.
func TestUsual(t *testing.T) {
	m := newMade()
	m.usual()
	_, s := m.read(t)
	want := []interpreter.Frame{
		{Function: "inner", File: "inner", Line: 21}, {Function: "outer", File: "outer", Line: 11},
	}
	if len(s.Stacks) != 1 || !slices.Equal(s.Stacks[0].Frames, want) || s.Stacks[0].Moved || s.Stacks[0].HoldsLock {
		t.Errorf("%+v", s)
	}
	m.gilTo(madeState, 1)
	if _, s := m.read(t); len(s.Stacks) != 1 || !s.Stacks[0].HoldsLock {
		t.Errorf("it has the GIL: %+v", s)
	}
	m.gilTo(madeState, 0)
	if _, s := m.read(t); len(s.Stacks) != 1 || s.Stacks[0].HoldsLock {
		t.Errorf("it had the GIL: %+v", s)
	}
}

// TestRunsMeanwhile: a thread that holds the GIL and calls another function with each read.
func TestRunsMeanwhile(t *testing.T) {
	m := newMade()
	inner, outer, heap := m.usual()
	m.gilTo(madeState, 1)
	third := m.code(3, "third")
	n := uint64(0)
	m.Before = func(at uint64) { // each walk sees another innermost function
		if at == madeState {
			n++
			m.frame(heap, madeChunk+0x20, []uint64{inner, third}[n%2], ownedByGenerator)
		}
	}
	if got, s := m.read(t); got != "outer" || !s.Stacks[0].Moved || !s.Stacks[0].HoldsLock {
		t.Errorf("%q, %+v", got, s)
	}
	m.Before = func(at uint64) { // the outermost function, too
		if at == madeState {
			n++
			m.frame(madeChunk+0x20, 0, []uint64{outer, third}[n%2], 0)
		}
	}
	if got, s := m.read(t); got != "" || s.Lost != 1 {
		t.Errorf("%q, %+v", got, s)
	}
}

// TestTakesGIL: the thread gets the GIL during the first walk, and returns.
func TestTakesGIL(t *testing.T) {
	m := newMade()
	m.usual()
	m.Before = func(at uint64) {
		if at == madeHeap {
			m.gilTo(madeState, 1)
			m.runs(madeChunk + 0x20)
		}
	}
	if got, s := m.read(t); got != "outer" || !s.Stacks[0].Moved {
		t.Errorf("%q, %+v", got, s)
	}
}

// TestHostile: what no interpreter has.
func TestHostile(t *testing.T) {
	huge := uint64(1) << 62
	for what, c := range map[string]struct {
		make func(*made)
		want string
		lost int
	}{
		"a frame that calls itself": {func(m *made) { m.Put(madeHeap+m.layout.previous, madeHeap) }, "inner inner", 0},
		"frames of C that do so": {func(m *made) {
			m.frame(madeHeap, madeHeap, 0, ownedByC)
		}, "", 0},
		"a generator without a caller": {func(m *made) { m.Put(madeHeap+m.layout.previous, 0) }, "", 1},
		"an owner that is none":        {func(m *made) { m.frame(madeHeap, 0, 0, 77) }, "", 1},
		"a frame nowhere":              {func(m *made) { m.runs(huge) }, "", 1},
		"a frame at the end": {func(m *made) {
			m.runs(^uint64(0) - 7)
			m.Put(madeState+m.layout.chunk, ^uint64(0)-4095)
		}, "", 1},
		"a chunk after its frames": {func(m *made) { m.Put(madeState+m.layout.chunk, madeEnd) }, "inner outer", 0},
		"a frame beyond a hole": {func(m *made) {
			m.Put(madeState+m.layout.chunk, madeRuntime-0x1000)
		}, "inner outer", 0},
		"code that is none":   {func(m *made) { m.Put(madeCode+0x400+objectType, 1) }, "", 1},
		"a name that is none": {func(m *made) { m.Put(madeText+0x200+objectType, 1) }, "", 1},
		"an endless name":     {func(m *made) { m.Put(madeText+0x200+objectLength, huge) }, "long", 0},
		"an odd width":        {func(m *made) { m.Put(madeText+0x200+stringState, 3<<2|1<<5) }, "", 1},
		"lines without end":   {func(m *made) { m.Put(madeTables+0x200+objectLength, huge) }, "inner outer", 0},
		"lines that are none": {func(m *made) { m.Put(madeTables+0x200+objectType, 0) }, "", 1},
		"thread states in a ring": {func(m *made) {
			m.Put(madeOther+threadNext, madeState)
		}, "inner outer", 0},
		"interpreters in a ring": {func(m *made) { m.Put(madeInterpreter, madeInterpreter) }, "inner outer", 0},
		"a state that was freed": {func(m *made) { m.Put(madeState+threadPrevious, madeHeap) }, "", 0},
		"another thread's state": {func(m *made) { m.Put(madeState+m.layout.nativeID, 99) }, "", 0},
		"no interpreter":         {func(m *made) { m.Put(madeRuntime+40, 0) }, "", 0},
		"no frame":               {func(m *made) { m.runs(0) }, "", 0},
	} {
		m := newMade()
		m.usual()
		c.make(m)
		got, s := m.read(t)
		if c.want == "long" {
			got = fmt.Sprint(len([]rune(strings.TrimSuffix(got, " outer"))))
			c.want = fmt.Sprint(interpreter.MaxText)
		}
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" || s.Lost != c.lost {
			t.Errorf("%s: %q, %d lost", what, got, s.Lost)
		}
		if m.Reads > memorytest.MostReads(1) {
			t.Errorf("%s: %d reads", what, m.Reads)
		}
	}
}

// TestCodeIsReplaced: another function is at the place of one, at the latest some calls later; one that a program made,
// at once.
func TestCodeIsReplaced(t *testing.T) {
	for _, file := range []string{"shop.py", "<string>"} {
		m := newMade()
		inner, _, _ := m.usual()
		m.code(5, file)
		m.Put(inner+m.layout.filename, madeText+5*0x100)
		m.read(t)
		m.code(4, "other")
		m.Put(inner+m.layout.qualname, madeText+4*0x100)
		for n := 0; ; n++ {
			if got, _ := m.read(t); got == "other outer" {
				if n > 0 && file == "<string>" {
					t.Errorf("%s: after %d calls", file, n)
				}
				break
			}
			if n > interpreter.CheckEvery {
				t.Fatalf("%s: it is never read again", file)
			}
		}
	}
}

// TestText: strings of each width; what does not print.
func TestText(t *testing.T) {
	m := newMade()
	for state, c := range map[uint64]struct{ raw, want string }{
		1<<2 | 1<<5 | 1<<6: {"a\x1bb\n", "a?b?"},
		1<<2 | 1<<5:        {"gr\xf6\xdf", "größ"},
		2<<2 | 1<<5:        {"\x3b\x04\x00\xd8\xac\x20\x41\x00", "л?€A"},
		4<<2 | 1<<5:        {"\x80\xf6\x01\x00\xff\xff\xff\xff", "🚀?"},
	} {
		data, width := m.layout.compact, state>>2&7
		if state&(1<<6) != 0 {
			data = m.layout.ascii
		}
		m.Put(madeText+objectType, madeTypes+8)
		m.Put(madeText+objectLength, uint64(len(c.raw))/width)
		m.Put(madeText+stringState, state)
		m.PutText(madeText+data, c.raw)
		if got, err := m.text(madeText); got != c.want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, c.want)
		}
	}
}

// TestLineOf: a table as the compiler makes it.
func TestLineOf(t *testing.T) {
	table := []byte{
		1<<7 | 15<<3,          // one unit without a line
		1<<7 | 3<<3 | 1, 0x12, // two units of the first line
		1<<7 | 12<<3, 4, 9, // one, two lines below
		1<<7 | 13<<3, 1<<6 | 3, 1, // one, 33 lines above: 67 is 3 and 1<<6
		1<<7 | 14<<3 | 7, 40, 2, 1, 1, // eight, 20 lines below
		1<<7 | 14<<3, 1 << 6, 1 << 6, // cut
	}
	for offset, want := range map[uint64]int{
		0: -100, 2: 100, 4: 100, 6: 102, 8: 69, 10: 89, 24: 89, 28: -100, 1 << 40: -100,
	} {
		line, known := lineOf(table, 100, offset)
		if !known {
			line = -line
		}
		if line != want {
			t.Errorf("%d: %d, want %d", offset, line, want)
		}
	}
}

// FuzzLineOf: any table ends.
func FuzzLineOf(f *testing.F) {
	f.Add([]byte{1<<7 | 14<<3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 1, uint64(2))
	f.Fuzz(func(t *testing.T, table []byte, first int, offset uint64) {
		if line, known := lineOf(table, first, offset); !known && line != first {
			t.Errorf("%d", line)
		}
	})
}

// TestVersions: which are refused, and why.
func TestVersions(t *testing.T) {
	for version, want := range map[uint64]string{
		0x030a0df0: "not known", 0x031000f0: "not known", 0x030d00f0: "does not begin with its offsets", 0: "not known",
	} {
		m := newMade()
		m.Put(madeEnd-8, version)
		_, err := m.identify(madeEnd - 8)
		if !errors.Is(err, interpreter.ErrVersion) || !strings.Contains(err.Error(), want) {
			t.Errorf("%x: %v", version, err)
		}
	}
	m := newMade()
	if _, err := m.identify(0); !errors.Is(err, interpreter.ErrVersion) {
		t.Errorf("%v", err)
	}
	for change, want := range map[int]string{
		2: "without the GIL", 9: "cannot be", 21: "cannot be", 25: "cannot be", 28: "cannot be", 33: "cannot be",
		43: "cannot be", 17: "cannot be",
	} {
		f := memorytest.ReadFixture(t, "testdata/cpython-3.13.18.mem.gz")
		var runtime [publishedBytes]byte
		if _, err := f.ReadAt(runtime[:], int64(f.Variables[0])); err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint64(runtime[8*change:], 1<<40)
		if _, err := layoutOf(0x030d12f0, runtime[:]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", change, err)
		}
	}
}

// denied is a host that does not let its files be opened.
type denied struct{ hostfs.Root }

func (denied) OpenRegular(name string, _ bool) (*os.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

// TestOpenSaysWhy: processes that cannot be read.
func TestOpenSaysWhy(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "proc/77"), 0o755); err != nil {
		t.Fatal(err)
	}
	root := hostfs.Root{Dir: dir}
	if _, err := Language.Open(root, 77); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such process: %v", err)
	}
	maps := "00400000-00410000 r-xp 00000000 08:01 5 /usr/bin/python3.11\n"
	if err := os.WriteFile(filepath.Join(dir, "proc/77/maps"), []byte(maps), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Language.Open(root, 77); !errors.Is(err, interpreter.ErrNone) {
		t.Errorf("its program cannot be read: %v", err)
	}
	_, err := Language.Open(denied{root}, 77)
	if !errors.Is(err, interpreter.ErrPrivilege) || !errors.Is(err, os.ErrPermission) {
		t.Errorf("another's: %v", err)
	}
}
