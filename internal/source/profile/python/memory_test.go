package python

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// span is a part of a memory.
type span struct {
	at uint64
	b  []byte
}

// memory is that of a process that was, or never was: all else is not mapped.
type memory struct {
	spans []span
	reads int
	// before, if set, is called before each read.
	before func(at uint64)
}

func (m *memory) ReadAt(b []byte, off int64) (int, error) {
	m.reads++
	if m.before != nil {
		m.before(uint64(off))
	}
	for _, s := range m.spans {
		if at := uint64(off); at >= s.at && at-s.at < uint64(len(s.b)) && uint64(len(s.b))-(at-s.at) >= uint64(len(b)) {
			return copy(b, s.b[at-s.at:]), nil
		}
	}
	return 0, errors.New("not mapped")
}

// recorder keeps what is read of a memory.
type recorder struct {
	io.ReaderAt
	spans []span
}

func (r *recorder) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(b, off)
	if n == len(b) {
		r.spans = slices.DeleteFunc(r.spans, func(s span) bool { return s.at == uint64(off) && len(s.b) <= n })
		r.spans = append(r.spans, span{uint64(off), bytes.Clone(b)})
	}
	return n, err
}

// A fixture is gzipped text: where the variables are that open looks for; a thread with its name and number in each
// line; and then memory, its address and bytes.

// write makes a fixture.
func (r *recorder) write(file string, at [5]uint64, threads map[string]int) error {
	var text bytes.Buffer
	z := gzip.NewWriter(&text)
	fmt.Fprintln(z, at[0], at[1], at[2], at[3], at[4])
	for name := range stacks {
		fmt.Fprintln(z, "thread", name, threads[name])
	}
	for _, s := range r.spans {
		fmt.Fprintf(z, "memory %x %x\n", s.at, s.b)
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

// readFixture gives the process of a fixture, and its memory.
func readFixture(t testing.TB, file string) (*program, *memory) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	p, m := &program{threads: map[string]int{}, lines: programText(t)}, &memory{}
	in := bufio.NewReader(z)
	var at [5]uint64
	if _, err := fmt.Fscan(in, &at[0], &at[1], &at[2], &at[3], &at[4]); err != nil {
		t.Fatal(err)
	}
	for {
		var kind, name string
		var tid int
		var s span
		if _, err := fmt.Fscan(in, &kind); errors.Is(err, io.EOF) {
			break
		}
		if kind == "thread" {
			_, err = fmt.Fscan(in, &name, &tid)
			p.threads[name] = tid
		} else {
			_, err = fmt.Fscanf(in, "%x %x\n", &s.at, &s.b)
			m.spans = append(m.spans, s)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	p.Process = newProcess(m, at)
	if err := p.identify(at[1]); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return p, m
}

// program is testdata/threads.py that runs, or its memory.
type program struct {
	*Process
	pid     int
	threads map[string]int // numbers by name
	lines   []string       // its text
}

func programText(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/threads.py")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// stacks are the frames that threads of testdata/threads.py have in a row, the innermost first: the function, and what
// the comment in the line says.
var stacks = map[string][]string{
	"spin":      {"spin_within # spins", "spin.<locals>.nested # calls spin_within", "spin # calls nested"},
	"wait":      {"Shop.wait # sleeps"},
	"loop":      {"parse # blocks the loop", "handler # awaits parse"},
	"generator": {"Shop.wait # sleeps", "générer.<locals>.<genexpr> # in a generator", "générer # in a generator"},
	"main":      {"main # reads"},
}

// want is a frame as in stacks.
func (p *program) want(s string) (f Frame) {
	name, mark, _ := strings.Cut(s, " # ")
	i := slices.IndexFunc(p.lines, func(l string) bool { return strings.Contains(l, "# "+mark) })
	return Frame{Function: name, Line: i + 1}
}

func (p *program) has(s Stack, want []string) bool {
	for i, w := range want {
		if i >= len(s.Frames) {
			return false
		}
		f, wanted := s.Frames[i], p.want(w)
		if f.Function != wanted.Function || f.Line != wanted.Line || filepath.Base(f.File) != "threads.py" || f.Begin {
			return false
		}
	}
	return true
}

// TestRecorded: memory of testdata/threads.py in each version, which was written by
// go test -run TestStacks ./internal/source/profile/python -python PROGRAM -record cpython.
func TestRecorded(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.mem.gz")
	if len(files) < 5 {
		t.Errorf("only %v", files)
	}
	for _, file := range files {
		p, m := readFixture(t, file)
		if !strings.HasSuffix(file, "-"+p.Version+".mem.gz") {
			t.Errorf("%s is of Python %s", file, p.Version)
		}
		var s Sample
		for name, want := range stacks {
			for range checkEvery + 2 {
				if err := p.Stacks([]int{p.threads[name], 1}, &s); err != nil {
					t.Fatal(err)
				}
				if len(s.Stacks) != 1 || !p.has(s.Stacks[0], want) || s.Lost > 0 {
					t.Errorf("%s: the stack of %s is %+v", file, name, s)
				}
			}
		}
		least := 0
		for range checkEvery { // in one of them code is checked
			m.reads = 0
			if err := p.Stacks([]int{p.threads["wait"]}, &s); err != nil {
				t.Fatal(err)
			}
			if least == 0 || m.reads < least {
				least = m.reads
			}
		}
		if least > 9 { // a frame of C is read by itself
			t.Errorf("%s: %d reads for one thread", file, least)
		}
	}
}

// FuzzMemory: no memory makes Stacks panic, go on without end, or give more than it may.
func FuzzMemory(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.mem.gz")
	var fixtures []*program
	for _, file := range files {
		p, _ := readFixture(f, file)
		fixtures = append(fixtures, p)
	}
	f.Add(0, []byte{0, 3, 0, 56, 1, 2, 3, 4, 5, 6, 7, 8})
	for i := range files {
		f.Add(i, bytes.Repeat([]byte{0, 20, 0, 48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 70}, 9))
	}
	f.Fuzz(func(t *testing.T, which int, patches []byte) {
		p := fixtures[uint(which)%uint(len(files))]
		m := &memory{}
		for _, s := range p.mem.(*memory).spans {
			m.spans = append(m.spans, span{s.at, bytes.Clone(s.b)})
		}
		q := newProcess(m, [5]uint64{p.runtime, 0, p.types.code, p.types.text, p.types.bytes})
		q.layout = p.layout
		// Each patch is 8 bytes at some place, or as there are at another place, so that lists get loops.
		for ; len(patches) >= 12; patches = patches[12:] {
			s := m.spans[int(binary.BigEndian.Uint16(patches))%len(m.spans)]
			to := s.b[int(binary.BigEndian.Uint16(patches[2:]))%len(s.b):]
			value := patches[4:12]
			if other := m.spans[int(binary.BigEndian.Uint16(value))%len(m.spans)]; value[7]&1 == 0 {
				value = binary.LittleEndian.AppendUint64(nil, other.at+uint64(value[2])*8)
			}
			copy(to, value)
		}
		var tids []int
		for _, tid := range p.threads {
			tids = append(tids, tid)
		}
		var s Sample
		for range 3 {
			m.reads = 0
			_ = q.Stacks(tids, &s)
			if m.reads > 2*maxStates+len(tids)*(walks*(maxDepth+4)+4*maxFrames) {
				t.Errorf("%d reads", m.reads)
			}
			for _, stack := range s.Stacks {
				if len(stack.Frames) > maxFrames {
					t.Errorf("%d frames", len(stack.Frames))
				}
				for _, f := range stack.Frames {
					if len(f.Function) > 4*maxText || len(f.File) > 4*maxText {
						t.Errorf("%+v", f)
					}
				}
			}
		}
	})
}
