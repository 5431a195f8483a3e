package python

// threadState is where the interpreter keeps what it knows of a thread.
type threadState struct {
	id              uint64 // of the thread in the namespace of the process
	at, interpreter uint64
}

// findStates goes through the thread states of all interpreters. It gives their number, and that of interpreters.
func (p *Process) findStates() (n int) {
	clear(p.states)
	interpreter, err := p.word(p.runtime + p.layout.interpreters)
	for range maxInterpreters {
		n++
		if err != nil || interpreter == 0 {
			break
		}
		state, err2 := p.word(interpreter + p.layout.threads)
		for ; err2 == nil && state != 0 && n < maxStates; n++ {
			b, err := p.part(state, p.layout.nativeID+8)
			if err != nil {
				break
			}
			id := pointer(b, p.layout.nativeID)
			p.states[id] = threadState{id, state, interpreter}
			state = pointer(b, threadNext)
		}
		interpreter, err = p.word(interpreter + p.layout.next)
	}
	return n
}

// linked reports whether the thread state that walk has read is in the list of its interpreter: else it was freed.
func (p *Process) linked(state uint64) bool {
	before := pointer(p.state[:], threadInterpreter) + p.layout.threads
	if previous := pointer(p.state[:], threadPrevious); previous != 0 {
		before = previous + threadNext
	}
	to, err := p.word(before)
	return err == nil && to == state
}

// gilState is what is known of a GIL; nothing where it cannot be read.
type gilState struct {
	at       uint64
	holder   uint64 // the thread state that holds it; where it is not locked, the last one that did
	locked   bool
	switches uint64 // how often it went to another thread
}

// gilOf is where the state of the GIL of an interpreter is.
func (p *Process) gilOf(interpreter uint64) uint64 {
	if p.layout.gilInRuntime {
		return p.runtime + p.layout.gil
	}
	at, err := p.word(interpreter + p.layout.gil)
	if err != nil {
		return 0
	}
	return at
}

func (p *Process) gil(at uint64) gilState {
	l := &p.layout
	b, err := p.part(at, max(l.holder, l.locked+8)+8)
	if err != nil {
		return gilState{}
	}
	return gilState{at, pointer(b, l.holder), uint32(pointer(b, l.locked)) == 1, pointer(b, l.locked+8)}
}
