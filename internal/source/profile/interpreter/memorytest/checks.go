package memorytest

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/profile/interpreter"
	"slowpath/internal/source/profile/symbol"
)

// Checked is a language with the program of its tests, and the frames that threads of that have in a row, the innermost
// first: the function, and what the comment in the line says.
type Checked struct {
	*interpreter.Language
	Program string
	Stacks  map[string][]string
}

func (c Checked) identified(t testing.TB, mem io.ReaderAt, at []uint64) *interpreter.Process {
	t.Helper()
	r, version, err := c.Identify(mem, at)
	if err != nil {
		t.Fatal(err)
	}
	return interpreter.NewProcess(version, r)
}

// Recorded checks the stacks in all recorded memories, of which there must be so many, and that a thread that waits
// costs no more reads than this.
func (c Checked) Recorded(t *testing.T, versions, reads int) {
	t.Helper()
	files, _ := filepath.Glob("testdata/*.mem.gz")
	if len(files) < versions {
		t.Errorf("only %v", files)
	}
	for _, file := range files {
		m, p := ReadFixture(t, file), NewProgram(t, c.Program)
		p.Process, p.Threads = c.identified(t, m, m.Variables), m.Threads
		if !strings.HasSuffix(file, "-"+p.Version+".mem.gz") {
			t.Errorf("%s is of %s %s", file, c.Name, p.Version)
		}
		var s interpreter.Sample
		for name, want := range c.Stacks {
			for range interpreter.CheckEvery + 2 {
				if err := p.Stacks([]int{p.Threads[name], 1}, &s); err != nil {
					t.Fatal(err)
				}
				if len(s.Stacks) != 1 || !p.Has(s.Stacks[0], want) || s.Lost > 0 {
					t.Errorf("%s: the stack of %s is %+v", file, name, s)
				}
			}
		}
		least := 0
		for range interpreter.CheckEvery { // in one of them code is checked
			m.Reads = 0
			if err := p.Stacks([]int{p.Threads["wait"]}, &s); err != nil {
				t.Fatal(err)
			}
			if least == 0 || m.Reads < least {
				least = m.Reads
			}
		}
		if least > reads {
			t.Errorf("%s: %d reads for one thread", file, least)
		}
	}
}

// latest is a memory that is another one from some time on.
type latest struct{ *Memory }

// Fuzz changes recorded memories: none may make Stacks panic, go on without end, or give more than it may.
func (c Checked) Fuzz(f *testing.F) {
	f.Helper()
	files, _ := filepath.Glob("testdata/*.mem.gz")
	var fixtures []*Fixture
	f.Add(0, []byte{0, 3, 0, 56, 1, 2, 3, 4, 5, 6, 7, 8})
	for i, file := range files {
		fixtures = append(fixtures, ReadFixture(f, file))
		f.Add(i, bytes.Repeat([]byte{0, 20, 0, 48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 70}, 9))
	}
	f.Fuzz(func(t *testing.T, which int, patches []byte) {
		recorded := fixtures[uint(which)%uint(len(files))]
		m := &latest{&recorded.Memory}
		p := c.identified(t, m, recorded.Variables)
		m.Memory = recorded.Patched(patches)
		tids := (&Program{Threads: recorded.Threads}).TIDs()
		var s interpreter.Sample
		for range 3 {
			m.Reads = 0
			_ = p.Stacks(tids, &s)
			if m.Reads > MostReads(len(tids)) {
				t.Errorf("%d reads", m.Reads)
			}
			for _, stack := range s.Stacks {
				if len(stack.Frames) > interpreter.MaxFrames {
					t.Errorf("%d frames", len(stack.Frames))
				}
				for _, f := range stack.Frames {
					if len(f.Function) > 4*interpreter.MaxText || len(f.File) > 4*interpreter.MaxText {
						t.Errorf("%+v", f)
					}
				}
			}
		}
	})
}

// Functions are those that are read of a thread, as "inner outer".
func Functions(t *testing.T, p *interpreter.Process, tid int) (functions string, s interpreter.Sample) {
	t.Helper()
	if err := p.Stacks([]int{tid}, &s); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, stack := range s.Stacks {
		for _, f := range stack.Frames {
			names = append(names, f.Function)
		}
	}
	return strings.Join(names, " "), s
}

// MostReads is how many reads a call of Stacks may take for so many threads.
func MostReads(threads int) int {
	return 2*interpreter.MaxThreads + threads*(interpreter.Walks*(interpreter.MaxDepth+4)+8*interpreter.MaxFrames)
}

// Started checks the stacks of a program that runs. With a name, what is read of it is recorded under that.
func (c Checked) Started(t *testing.T, p *Program, record string) {
	t.Helper()
	var s interpreter.Sample
	for name, want := range c.Stacks {
		await.UntilOr(t, func() bool {
			if err := p.Process.Stacks([]int{p.Threads[name]}, &s); err != nil {
				t.Fatal(err)
			}
			return len(s.Stacks) == 1 && p.Has(s.Stacks[0], want)
		}, func() string { return fmt.Sprintf("the stack of %s is %+v", name, s) })
		if got := s.Stacks[0]; got.TID != p.Threads[name] || got.Truncated || got.Moved && name != "spin" {
			t.Errorf("%s: %+v", name, got)
		}
		for _, f := range s.Stacks[0].Frames {
			if f.Line == 0 || f.File == "" || f.Begin && f.Function != "<module>" {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
	if record != "" {
		c.record(t, p, record)
	}
	deep := func() bool {
		if err := p.Process.Stacks([]int{p.Threads["deep"]}, &s); err != nil {
			t.Fatal(err)
		}
		return len(s.Stacks) == 1 && s.Stacks[0].Truncated && len(s.Stacks[0].Frames) == interpreter.MaxFrames &&
			s.Stacks[0].Frames[interpreter.MaxFrames-1].Line == p.Want("deep # recurses").Line
	}
	await.UntilOr(t, deep, func() string { return fmt.Sprintf("the deep stack is %+v", s) })
}

// record writes the memory that is read of the threads in Stacks.
func (c Checked) record(t *testing.T, p *Program, name string) {
	t.Helper()
	mapped, err := symbol.OpenProcess(hostfs.Root{}, p.PID, symbol.Files{})
	if err != nil {
		t.Fatal(err)
	}
	at := mapped.Variables(c.Library, c.Variables...)
	mem, err := hostfs.Root{}.Open(fmt.Sprintf("/proc/%d/mem", p.PID))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	r := &Recorder{ReaderAt: mem}
	q := c.identified(t, r, at)
	var s interpreter.Sample
	for name, want := range c.Stacks {
		await.Until(t, name+" is read", func() bool {
			return q.Stacks([]int{p.Threads[name]}, &s) == nil && len(s.Stacks) == 1 && p.Has(s.Stacks[0], want)
		})
	}
	if err := r.Write("testdata/"+name+"-"+p.Version+".mem.gz", at, p.Threads); err != nil {
		t.Fatal(err)
	}
}

// ShortCalls checks a thread that holds the lock and calls short functions over and over, faster than it can be read:
// each frame is one of callers, with one of these as its caller but for very few.
func (p *Program) ShortCalls(t *testing.T, callers map[string][]string) {
	t.Helper()
	var s interpreter.Sample
	read, lost, wrong, seen := 0, 0, 0, map[string]int{}
	for range 20_000 {
		if err := p.Stacks([]int{p.Threads["churn"]}, &s); err != nil {
			t.Fatal(err)
		}
		lost += s.Lost
		for _, stack := range s.Stacks {
			read++
			for i, f := range stack.Frames {
				seen[f.Function]++
				caller := ""
				if i+1 < len(stack.Frames) {
					caller = stack.Frames[i+1].Function
				}
				if !slices.Contains(callers[f.Function], caller) {
					wrong++
					t.Logf("%s is called by %q: %+v", f.Function, caller, stack)
				}
			}
		}
	}
	t.Logf("%d stacks, %d lost, %d wrong: %v", read, lost, wrong, seen)
	if read < lost || wrong*1000 > read || seen["churn"] == 0 || seen["churn_one"] == 0 {
		t.Errorf("%d stacks were read, %d lost, %d wrong", read, lost, wrong)
	}
}
