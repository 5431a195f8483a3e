package interpreter

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
)

// made is an interpreter with a thread, number 7, whose calls are what its test says.
type made struct {
	walks    func(n int) (functions []uint64, ends Ends, err error) // the innermost first
	holders  []uint64                                               // of the lock by reads of it
	counted  bool
	searched int // threads that were gone through
	name     uint64
	passing  bool
	freed    bool
	gone     error
	n, locks int
}

const madeAt = 0x1000

var whole = Ends{Outermost: true, Innermost: true}

func (m *made) Threads(each func(Thread)) int {
	each(Thread{ID: 7, At: madeAt, In: 1})
	m.searched += MaxThreads
	return MaxThreads
}

func (m *made) Walk(_ Thread, into []Call) ([]Call, Ends, error) {
	functions, ends, err := m.walks(m.n)
	m.n++
	for i, f := range functions { // those of the same depth are at the same place
		into = append(into, Call{At: uint64(len(functions) - i), Code: f, Instruction: f})
	}
	return into, ends, err
}

func (m *made) Remains(Thread) bool        { return !m.freed }
func (m *made) LockOf(in uint64) uint64    { return in }
func (m *made) Alive() error               { return m.gone }
func (m *made) Key(at uint64) (Key, error) { return Key{at, m.name}, nil }

func (m *made) Lock(at uint64) Lock {
	holder := m.holders[min(m.locks, len(m.holders)-1)]
	m.locks++
	return Lock{At: at, Holder: holder, Locked: holder != 0, Counted: m.counted}
}

func (m *made) Code(k Key) (*Code, error) {
	return &Code{
		Name: fmt.Sprint(k[0], ".", k[1]), File: "a", Begin: 0, End: 999, Bytes: 1, Passing: m.passing,
		Line: func(uint64) (int, bool) { return int(k[0]), true },
	}, nil
}

func (m *made) read(t *testing.T) (lines []int, s Sample) {
	t.Helper()
	if err := NewProcess("1", m).Stacks([]int{7}, &s); err != nil {
		t.Fatal(err)
	}
	for _, stack := range s.Stacks {
		for _, f := range stack.Frames {
			lines = append(lines, f.Line)
		}
	}
	return lines, s
}

// TestSteady: threads that run while they are read, or do not.
func TestSteady(t *testing.T) {
	const other = 0x2000
	always := func(functions ...uint64) func(int) ([]uint64, Ends, error) {
		return func(int) ([]uint64, Ends, error) { return functions, whole, nil }
	}
	turns := func(all ...[]uint64) func(int) ([]uint64, Ends, error) {
		return func(n int) ([]uint64, Ends, error) { return all[n%len(all)], whole, nil }
	}
	for name, c := range map[string]struct {
		made
		want         []int
		walks        int
		moved, holds bool
		lost         int
	}{
		"another one has the lock, and switches are counted": {
			made: made{walks: always(3, 2, 1), holders: []uint64{other}, counted: true}, want: []int{3, 2, 1}, walks: 1,
		},
		"they are not counted": {
			made: made{walks: always(3, 2, 1), holders: []uint64{other}}, want: []int{3, 2, 1}, walks: 2,
		},
		"nobody has it": {
			made: made{walks: always(3, 2, 1), holders: []uint64{0}, counted: true}, want: []int{3, 2, 1}, walks: 2,
		},
		"it has it": {
			made: made{walks: always(3, 2, 1), holders: []uint64{madeAt}}, want: []int{3, 2, 1}, walks: 3, holds: true,
		},
		"it gets it meanwhile": {
			made: made{walks: always(2, 1), holders: []uint64{other, other, madeAt, other}, counted: true}, walks: 1,
			want: []int{2, 1},
		},
		"its innermost call changes": {
			made: made{walks: turns([]uint64{3, 2, 1}, []uint64{4, 2, 1}), holders: []uint64{madeAt}}, walks: 3,
			want: []int{2, 1}, moved: true, holds: true,
		},
		"all of them change": {
			made: made{walks: turns([]uint64{1}, []uint64{2}), holders: []uint64{madeAt}}, walks: Walks, lost: 1,
		},
		"a walk says that it ran on": {
			made: made{walks: func(int) ([]uint64, Ends, error) {
				return []uint64{2, 1}, Ends{Outermost: true}, nil
			}, holders: []uint64{madeAt}}, walks: 3, want: []int{2, 1}, moved: true, holds: true,
		},
		"torn now and then": {
			made: made{walks: func(n int) ([]uint64, Ends, error) {
				if n == 1 {
					return nil, Ends{}, ErrTorn
				}
				return []uint64{2, 1}, whole, nil
			}, holders: []uint64{other}}, walks: 4, want: []int{2, 1},
		},
		"beyond its code": {made: made{walks: always(1000), holders: []uint64{other}}, walks: 2, lost: 1},
		"freed":           {made: made{walks: always(1), holders: []uint64{other}, freed: true}, walks: 2},
	} {
		got, s := c.read(t)
		if !slices.Equal(got, c.want) || c.n != c.walks || s.Lost != c.lost {
			t.Errorf("%s: %v by %d walks, %d lost", name, got, c.n, s.Lost)
		}
		if len(c.want) > 0 && (s.Stacks[0].Moved != c.moved || s.Stacks[0].HoldsLock != c.holds) {
			t.Errorf("%s: %+v", name, s.Stacks[0])
		}
	}
}

// still is a thread that waits in a function.
func still(function uint64) *made {
	m := &made{holders: []uint64{0x2000}, counted: true}
	m.walks = func(int) ([]uint64, Ends, error) { return []uint64{function}, whole, nil }
	return m
}

// TestSearchesAreSpread: threads that the interpreter does not know are not searched for in all threads each time.
func TestSearchesAreSpread(t *testing.T) {
	m := still(1)
	p := NewProcess("1", m)
	var s Sample
	for range 100 {
		if err := p.Stacks([]int{1, 2, 3}, &s); err != nil {
			t.Fatal(err)
		}
	}
	if m.searched > 2*MaxThreads {
		t.Errorf("%d were gone through", m.searched)
	}
	if err := p.Stacks([]int{7}, &s); err != nil || len(s.Stacks) != 1 {
		t.Errorf("it is known by then: %+v, %v", s, err)
	}
}

// TestCodeIsReplaced: another function is at the place of one, at the latest some calls later; one that a program made,
// at once.
func TestCodeIsReplaced(t *testing.T) {
	for _, passing := range []bool{true, false} {
		m := still(1)
		m.passing = passing
		p := NewProcess("1", m)
		var s Sample
		_ = p.Stacks([]int{7}, &s)
		m.name = 5
		for n := 0; ; n++ {
			if err := p.Stacks([]int{7}, &s); err != nil || n > CheckEvery {
				t.Fatalf("after %d calls: %+v, %v", n, s, err)
			}
			if s.Stacks[0].Frames[0].Function == "1.5" {
				if passing != (n == 0) {
					t.Errorf("passing %v: after %d calls", passing, n)
				}
				break
			}
		}
	}
}

// TestCodesAreBounded: a process that makes code without end.
func TestCodesAreBounded(t *testing.T) {
	m := still(1)
	p := NewProcess("1", m)
	for i := range 2 * maxCodes {
		m.name = uint64(i)
		m.walks = func(int) ([]uint64, Ends, error) { return []uint64{uint64(i % 900)}, whole, nil }
		var s Sample
		if err := p.Stacks([]int{7}, &s); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.codes) > maxCodes || len(p.checked) > maxCodes {
		t.Errorf("%d, %d are kept", len(p.codes), len(p.checked))
	}
}

// TestMainThread: the kernel's main thread, for which the interpreter has another number.
func TestMainThread(t *testing.T) {
	p := NewProcess("1", still(1))
	p.pid = 70
	p.threads[Main] = Thread{ID: Main, At: madeAt}
	var s Sample
	if err := p.Stacks([]int{70, 71}, &s); err != nil || len(s.Stacks) != 1 || s.Stacks[0].TID != 70 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestGone: the process has ended.
func TestGone(t *testing.T) {
	m := still(1)
	m.freed, m.gone = true, os.ErrNotExist
	var s Sample
	if err := NewProcess("1", m).Stacks([]int{7}, &s); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%v", err)
	}
}
