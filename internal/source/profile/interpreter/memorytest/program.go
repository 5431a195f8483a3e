package memorytest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/profile/interpreter"
)

// Program is one whose threads are in functions that are known: a file in testdata, in which comments mark lines.
type Program struct {
	*interpreter.Process
	PID     int
	Threads map[string]int // numbers by name
	name    string
	lines   []string
}

// NewProgram reads the text of a program.
func NewProgram(t testing.TB, name string) *Program {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return &Program{Threads: map[string]int{}, name: name, lines: strings.Split(string(text), "\n")}
}

// Start runs the program, until it has written the name and number of each thread, the main thread's last, and opens
// it.
func (p *Program) Start(t testing.TB, in *interpreter.Language, wrap func(*exec.Cmd), command ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), p.name) // others may not read the sources
	if err := os.WriteFile(file, []byte(strings.Join(p.lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	command = slices.Insert(command, 1, file)
	c := exec.Command(command[0], command[1:]...)
	if wrap != nil {
		wrap(c)
	}
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); _ = c.Process.Kill(); _ = c.Wait() })
	p.PID = c.Process.Pid
	out := bufio.NewScanner(stdout)
	for p.Threads["main"] == 0 && out.Scan() {
		var name string
		var tid int
		if _, err := fmt.Sscan(out.Text(), &name, &tid); err != nil {
			t.Fatalf("%q: %v", out.Text(), err)
		}
		p.Threads[name] = tid
	}
	if p.Process, err = in.Open(hostfs.Root{}, p.PID); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	t.Log(in.Name, p.Version)
}

// TIDs are the numbers of all threads.
func (p *Program) TIDs() (all []int) {
	for _, tid := range p.Threads {
		all = append(all, tid)
	}
	slices.Sort(all)
	return all
}

// Want is a frame by the function, and the line by what its comment says: "Shop.wait # sleeps".
func (p *Program) Want(s string) interpreter.Frame {
	name, mark, _ := strings.Cut(s, " # ")
	i := slices.IndexFunc(p.lines, func(l string) bool { return strings.Contains(l, "# "+mark) })
	return interpreter.Frame{Function: name, Line: i + 1}
}

// Has reports whether a stack has these frames in a row, the innermost first.
func (p *Program) Has(s interpreter.Stack, want []string) bool {
	for i, w := range want {
		if i >= len(s.Frames) {
			return false
		}
		f, wanted := s.Frames[i], p.Want(w)
		if f.Function != wanted.Function || f.Line != wanted.Line || filepath.Base(f.File) != p.name || f.Begin {
			return false
		}
	}
	return true
}
