package interpreter

import (
	"errors"
	"os"
)

// Frame is a call of a function.
type Frame struct {
	Function string // its name, such as "Shop.parse" or "<module>"
	File     string // as the interpreter opened it
	Line     int    // in the file; 0 where it is not known
	// Begin says that Line is that of the begin of the function: it just begins, or the line of the call is not known.
	Begin bool
}

// Stack is what a thread runs.
type Stack struct {
	TID int // as asked for
	// HoldsLock: no other thread could run the interpreter when it was read. It may wait for the system with the lock.
	HoldsLock bool
	// Moved: the thread ran on while it was read. Frames further in than the first one are not known.
	Moved     bool
	Truncated bool    // there are more frames further out
	Frames    []Frame // the innermost first; none where the thread runs no function of the language
}

// Sample is what a call of Stacks has read.
type Sample struct {
	Stacks []Stack
	// Lost are stacks that changed too fast to be read, or whose memory is not what it should be.
	Lost int
}

// errNoThread is of a thread that the interpreter does not know.
var errNoThread = errors.New("the interpreter does not know it")

// Stacks reads the stacks of threads of the process by their numbers, into a sample whose memory it uses again. Threads
// that the interpreter does not know are left out. The error matches os.ErrProcessDone where the process has ended, or
// executes another program.
func (p *Process) Stacks(tids []int, into *Sample) error {
	into.Stacks, into.Lost = into.Stacks[:0], 0
	p.calls++
	p.seen = Lock{}
	n, missing := 0, false // threads that were gone through
	for _, tid := range tids {
		err := p.add(tid, into)
		if errors.Is(err, errNoThread) && n == 0 && p.calls >= p.searchAt {
			clear(p.threads)
			n = p.runtime.Threads(func(t Thread) { p.threads[t.ID] = t })
			err = p.add(tid, into)
		}
		switch {
		case errors.Is(err, errNoThread):
			missing = true
		case err != nil:
			into.Lost++
		}
	}
	// What the interpreter does not know is asked for again in vain: the price of a search is spread over calls.
	if missing && n > 0 {
		p.searchAt = p.calls + 1 + n/16
	}
	if len(into.Stacks) > 0 {
		return nil
	}
	if err := p.runtime.Alive(); err != nil {
		return errors.Join(os.ErrProcessDone, err)
	}
	return nil
}

// add reads the stack of a thread.
func (p *Process) add(tid int, into *Sample) error {
	t := p.threads[uint64(p.nativeID(tid))]
	if t.At == 0 && tid == p.pid {
		t = p.threads[Main]
	}
	if t.At == 0 {
		return errNoThread
	}
	n := len(into.Stacks)
	if n == cap(into.Stacks) {
		into.Stacks = append(into.Stacks, Stack{})
	}
	into.Stacks = into.Stacks[:n+1]
	s := &into.Stacks[n]
	*s = Stack{TID: tid, Frames: s.Frames[:0]}
	err := p.fill(s, t)
	if err != nil {
		into.Stacks = into.Stacks[:n]
	}
	return err
}

func (p *Process) fill(s *Stack, t Thread) error {
	calls, err := p.steady(s, t)
	if !p.runtime.Remains(t) {
		return errNoThread
	}
	if err != nil {
		return err
	}
	for _, call := range calls[:min(len(calls), MaxFrames)] {
		c, err := p.codeOf(call)
		if err != nil {
			return err
		}
		f, err := c.frame(call.Instruction)
		if err != nil {
			return err
		}
		s.Frames = append(s.Frames, f)
	}
	s.Truncated = s.Truncated || len(calls) > MaxFrames
	return nil
}

// steady reads a stack that may change meanwhile: a function that has returned by then seems to be called by one that
// never called it. Calls change only while their thread holds the lock, so that one walk is enough where another one
// held it from the begin to the end, by the count of its switches. Else it is what two walks have in common, from the
// outermost call on; or three where the thread held the lock, as functions that are called over and over may be at the
// same places each time.
func (p *Process) steady(s *Stack, t Thread) ([]Call, error) {
	lockAt := p.runtime.LockOf(t.In)
	before := p.seen
	if before.At != lockAt {
		before = p.runtime.Lock(lockAt)
	}
	agreed, needed := 0, 2
	for range Walks {
		calls, ends, err := p.runtime.Walk(t, p.walked[:0])
		p.walked = calls
		after := p.runtime.Lock(lockAt)
		s.HoldsLock = after.Locked && after.Holder == t.At
		if before.Locked && before.Holder == t.At || s.HoldsLock {
			needed = 3
		}
		still := before.Counted && before == after && after.Holder != t.At && after.Holder != 0
		before, p.seen = after, after
		if err != nil {
			agreed = 0
			continue
		}
		if still {
			s.Moved, s.Truncated = !ends.Innermost, !ends.Outermost
			return calls, nil
		}
		common := calls
		if agreed > 0 {
			common = shared(p.common, calls)
		}
		moved := agreed > 0 && len(common) < max(len(calls), len(p.common))
		if moved && (len(common) == 0 || !ends.Outermost) {
			agreed, moved, common = 0, false, calls
		}
		s.Moved = !ends.Innermost || moved || agreed > 0 && s.Moved
		p.common = append(p.common[:0], common...)
		if agreed++; agreed == needed {
			s.Truncated = !ends.Outermost
			return p.common, nil
		}
	}
	return nil, ErrTorn
}

// shared are the outermost calls that two walks have.
func shared(a, b []Call) []Call {
	n := 0
	for n < min(len(a), len(b)) {
		if c, as := a[len(a)-1-n], b[len(b)-1-n]; c.At != as.At || c.Code != as.Code {
			break
		}
		n++
	}
	return b[len(b)-n:]
}
