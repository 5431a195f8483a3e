package python

import (
	"errors"
	"math"
	"os"
)

// What is read of one process at most.
const (
	maxFrames       = 64   // of a stack that is reported: the innermost
	maxDepth        = 512  // of a stack that is followed to its end, with frames of C
	maxStates       = 4096 // thread states
	maxInterpreters = 64
	walks           = 8 // of a stack that changes
	// Frames of a thread lie one after the other in chunks of 16 KiB, or more where a frame needs it.
	maxChunk    = 64 << 10
	windowBytes = 8 << 10
)

// Frame is a call of a function.
type Frame struct {
	Function string // its qualified name, such as "Shop.parse" or "<module>"
	File     string // as the interpreter opened it
	Line     int    // in the file; 0 where it is not known
	// Begin says that Line is that of the begin of the function: it just begins, or the line of the call is not known.
	Begin bool
}

// Stack is what a thread runs.
type Stack struct {
	TID int // as asked for
	// HoldsGIL: no other thread could run Python when it was read. It may wait for the system with the GIL.
	HoldsGIL bool
	// Moved: the thread ran on while it was read. Frames further in than the first one are not known.
	Moved     bool
	Truncated bool    // there are more frames further out
	Frames    []Frame // the innermost first; none where the thread runs no Python
}

// Sample is what a call of Stacks has read.
type Sample struct {
	Stacks []Stack
	// Lost are stacks that changed too fast to be read, or whose memory is not what it should be.
	Lost int
}

// errNoState is of a thread that runs no Python.
var errNoState = errors.New("it has no thread state")

// Stacks reads the stacks of threads of the process by their numbers, into a sample whose memory it uses again. Threads
// that do not run Python are left out. The error matches os.ErrProcessDone where the process has ended, or executes
// another program.
func (p *Process) Stacks(tids []int, into *Sample) error {
	into.Stacks, into.Lost = into.Stacks[:0], 0
	p.calls++
	p.seen = gilState{}
	n, missing := 0, false // thread states that were gone through
	for _, tid := range tids {
		err := p.add(tid, into)
		if errors.Is(err, errNoState) && n == 0 && p.calls >= p.searchAt {
			n = p.findStates()
			err = p.add(tid, into)
		}
		switch {
		case errors.Is(err, errNoState):
			missing = true
		case err != nil:
			into.Lost++
		}
	}
	// What has no thread state is asked for again in vain: the price of a search is spread over calls.
	if missing && n > 0 {
		p.searchAt = p.calls + 1 + n/16
	}
	if len(into.Stacks) > 0 {
		return nil
	}
	if _, err := p.word(p.runtime); err != nil {
		return errors.Join(os.ErrProcessDone, err)
	}
	return nil
}

// add reads the stack of a thread.
func (p *Process) add(tid int, into *Sample) error {
	state := p.states[uint64(p.nativeID(tid))]
	if state.at == 0 {
		return errNoState
	}
	n := len(into.Stacks)
	if n == cap(into.Stacks) {
		into.Stacks = append(into.Stacks, Stack{})
	}
	into.Stacks = into.Stacks[:n+1]
	s := &into.Stacks[n]
	*s = Stack{TID: tid, Frames: s.Frames[:0]}
	err := p.fill(s, state)
	if err != nil {
		into.Stacks = into.Stacks[:n]
	}
	return err
}

func (p *Process) fill(s *Stack, state threadState) error {
	frames, err := p.steady(s, state)
	if pointer(p.state[:], p.layout.nativeID) != state.id || !p.linked(state.at) {
		return errNoState
	}
	if err != nil {
		return err
	}
	for _, f := range frames[:min(len(frames), maxFrames)] {
		c, err := p.codeOf(f)
		if err != nil {
			return err
		}
		s.Frames = append(s.Frames, c.frame(f.instruction))
	}
	s.Truncated = s.Truncated || len(frames) > maxFrames
	return nil
}

// frame is a call as the interpreter has it.
type frame struct{ at, code, instruction uint64 }

// steady reads a stack that may change meanwhile: a function that has returned by then seems to be called by one that
// never called it. Frames change only while their thread holds the GIL, so that one walk is enough where it did not
// hold it from the begin to the end. Else it is what two walks have in common, from the outermost frame on; or three
// where it held the GIL, as functions that are called over and over may be at the same places each time.
func (p *Process) steady(s *Stack, state threadState) ([]frame, error) {
	gilAt := p.gilOf(state.interpreter)
	before := p.seen
	if before.at != gilAt {
		before = p.gil(gilAt)
	}
	agreed, needed := 0, 2
	for range walks {
		frames, whole, err := p.walk(state.at, p.walked[:0])
		p.walked = frames
		after := p.gil(gilAt)
		s.HoldsGIL = after.locked && after.holder == state.at
		if before.locked && before.holder == state.at || s.HoldsGIL {
			needed = 3
		}
		still := before == after && after.holder != state.at && after.holder != 0
		before, p.seen = after, after
		if err != nil {
			agreed = 0
			continue
		}
		if still {
			s.Moved, s.Truncated = false, !whole
			return frames, nil
		}
		common := frames
		if agreed > 0 {
			common = shared(p.common, frames)
		}
		moved := agreed > 0 && len(common) < max(len(frames), len(p.common))
		if moved && (len(common) == 0 || !whole) {
			agreed, moved, common = 0, false, frames
		}
		s.Moved = agreed > 0 && (s.Moved || moved)
		p.common = append(p.common[:0], common...)
		if agreed++; agreed == needed {
			s.Truncated = !whole
			return p.common, nil
		}
	}
	return nil, errTorn
}

// shared are the outermost frames that two walks have.
func shared(a, b []frame) []frame {
	n := 0
	for n < min(len(a), len(b)) {
		if f, as := a[len(a)-1-n], b[len(b)-1-n]; f.at != as.at || f.code != as.code {
			break
		}
		n++
	}
	return b[len(b)-n:]
}

// walk follows the frames of a thread from the innermost on. It is whole where it came to the outermost.
func (p *Process) walk(state uint64, into []frame) (frames []frame, whole bool, err error) {
	l := &p.layout
	if err := p.read(state, p.state[:max(l.frame, l.chunk, l.nativeID)+8]); err != nil {
		return into, false, err
	}
	at, chunk := pointer(p.state[:], l.frame), pointer(p.state[:], l.chunk)
	if l.cframe {
		if at, err = p.word(at + l.currentFrame); err != nil {
			return into, false, err
		}
	}
	p.near.b = nil
	owner := byte(0)
	for range maxDepth {
		if at == 0 {
			if owner == ownedByGenerator { // it just waits again, and has no caller
				err = errTorn
			}
			return into, true, err
		}
		b, err := p.frame(at, chunk)
		if err != nil {
			return into, false, err
		}
		switch owner = b[l.owner]; {
		case owner > maxOwner:
			return into, false, errTorn
		case owner < ownedByC: // the last bits of references to objects are flags, from 3.14 on
			into = append(into, frame{at, pointer(b, l.executable) &^ 7, pointer(b, l.instruction)})
		}
		at = pointer(b, l.previous)
	}
	return into, false, nil
}

// frame reads one frame. Most are in a chunk, with their callers before them; those of generators and coroutines are
// not.
func (p *Process) frame(at, chunk uint64) ([]byte, error) {
	size := p.layout.frameSize
	if b := p.near.get(at, size); b != nil {
		return b, nil
	}
	if at < chunk || at-chunk > maxChunk || at > math.MaxInt64 {
		return p.part(at, size)
	}
	from := max(chunk, at+size-min(windowBytes, at+size))
	p.near.at, p.near.b = from, p.near.of[:at+size-from]
	if err := p.read(from, p.near.b); err != nil { // it is not in the chunk
		p.near.b = nil
		return p.part(at, size)
	}
	return p.near.get(at, size), nil
}
