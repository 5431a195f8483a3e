package python

import "slowpath/internal/source/profile/interpreter"

// Threads goes through the thread states of all interpreters. It gives their number, and that of interpreters.
func (p *process) Threads(each func(interpreter.Thread)) (n int) {
	in, err := p.Word(p.runtime + p.layout.interpreters)
	for range maxInterpreters {
		n++
		if err != nil || in == 0 {
			break
		}
		state, err2 := p.Word(in + p.layout.threads)
		for ; err2 == nil && state != 0 && n < interpreter.MaxThreads; n++ {
			b, err := p.Part(state, p.layout.nativeID+8)
			if err != nil {
				break
			}
			each(interpreter.Thread{ID: interpreter.Pointer(b, p.layout.nativeID), At: state, In: in})
			state = interpreter.Pointer(b, threadNext)
		}
		in, err = p.Word(in + p.layout.next)
	}
	return n
}

// Remains reports whether the thread state that Walk has read is in the list of its interpreter, for the same thread:
// else it was freed.
func (p *process) Remains(t interpreter.Thread) bool {
	before := interpreter.Pointer(p.state[:], threadInterpreter) + p.layout.threads
	if previous := interpreter.Pointer(p.state[:], threadPrevious); previous != 0 {
		before = previous + threadNext
	}
	to, err := p.Word(before)
	return err == nil && to == t.At && interpreter.Pointer(p.state[:], p.layout.nativeID) == t.ID
}

// LockOf is where the state of the GIL of an interpreter is.
func (p *process) LockOf(in uint64) uint64 {
	if p.layout.gilInRuntime {
		return p.runtime + p.layout.gil
	}
	at, err := p.Word(in + p.layout.gil)
	if err != nil {
		return 0
	}
	return at
}

// Lock reads the state of a GIL.
func (p *process) Lock(at uint64) interpreter.Lock {
	l := &p.layout
	b, err := p.Part(at, max(l.holder, l.locked+8)+8)
	if err != nil {
		return interpreter.Lock{}
	}
	return interpreter.Lock{
		At: at, Holder: interpreter.Pointer(b, l.holder), Locked: uint32(interpreter.Pointer(b, l.locked)) == 1,
		Switches: interpreter.Pointer(b, l.locked+8), Counted: true,
	}
}
