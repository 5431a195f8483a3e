package ruby

import (
	"encoding/binary"

	"slowpath/internal/source/profile/interpreter"
)

const maxRactors = 64

// list is what is in a list (ccan_list), by its head; false where it is not as many as it says, or does not close.
func (p *process) list(head uint64) (all []uint64, closes bool) {
	b, err := p.Part(head, listCount+4)
	if err != nil {
		return nil, false
	}
	at, count := interpreter.Pointer(b, listNext), int(binary.LittleEndian.Uint32(b[listCount:]))
	for previous := head; at != head; {
		b, err := p.Part(at, listCount)
		if err != nil || interpreter.Pointer(b, listPrevious) != previous || len(all) == interpreter.MaxThreads {
			return all, false
		}
		all = append(all, at)
		previous, at = at, interpreter.Pointer(b, listNext)
	}
	return all, len(all) == count
}

// Threads goes through the threads of all Ractors. It gives their number, and that of Ractors.
func (p *process) Threads(each func(interpreter.Thread)) (n int) {
	main, err := p.Word(p.vm + vmMainThread)
	if err != nil {
		return 1
	}
	ractors, _ := p.list(p.vm + vmRactors)
	for _, ractor := range ractors[:min(len(ractors), maxRactors)] {
		n++
		ractor -= p.layout.listed
		threads, _ := p.list(ractor + p.layout.threads)
		for _, at := range threads[:min(len(threads), interpreter.MaxThreads-min(n, interpreter.MaxThreads))] {
			n++
			if p.readThread(at) != nil || p.tid == 0 {
				continue
			}
			each(interpreter.Thread{ID: p.tid, At: at, In: ractor})
			if at == main { // 3.1 keeps the number that it had before a fork
				each(interpreter.Thread{ID: interpreter.Main, At: at, In: ractor})
			}
		}
	}
	return n
}

// readThread reads a thread, and its number.
func (p *process) readThread(at uint64) error {
	l := &p.layout
	p.tid = 0
	if err := p.Read(at, p.thread[:max(l.context, l.number)+8]); err != nil {
		return err
	}
	number := p.thread[l.number:]
	if l.native {
		native := interpreter.Pointer(number, 0)
		if native == 0 {
			return nil // no thread of the kernel runs it
		}
		var err error
		if number, err = p.Part(native+nativeNumber, 4); err != nil {
			return err
		}
	}
	p.tid = uint64(binary.LittleEndian.Uint32(number))
	return nil
}

// Remains reports whether the thread that Walk has read is in the list of its Ractor, and is the same: else it was
// freed.
func (p *process) Remains(t interpreter.Thread) bool {
	to, err := p.Word(interpreter.Pointer(p.thread[:], listPrevious) + listNext)
	same := p.tid == t.ID || t.ID == interpreter.Main
	return err == nil && to == t.At && same && interpreter.Pointer(p.thread[:], threadRactor) == t.In
}

// LockOf is where a Ractor has who holds its lock (GVL).
func (p *process) LockOf(ractor uint64) uint64 { return ractor + p.layout.holder }

// Lock reads who holds a lock. How often it went to another thread is not counted.
func (p *process) Lock(at uint64) interpreter.Lock {
	holder, err := p.Word(at)
	if err != nil {
		return interpreter.Lock{}
	}
	return interpreter.Lock{At: at, Holder: holder, Locked: holder != 0}
}
