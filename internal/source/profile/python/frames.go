package python

import (
	"math"

	"slowpath/internal/source/profile/interpreter"
)

const (
	maxInterpreters = 64
	// Frames of a thread lie one after the other in chunks of 16 KiB, or more where a frame needs it.
	maxChunk    = 64 << 10
	windowBytes = 8 << 10
)

// Walk follows the frames of a thread from the innermost on. It is whole where it came to the outermost.
func (p *process) Walk(t interpreter.Thread, into []interpreter.Call) (
	calls []interpreter.Call, ends interpreter.Ends, err error,
) {
	ends.Innermost = true
	l := &p.layout
	if err := p.Read(t.At, p.state[:max(l.frame, l.chunk, l.nativeID)+8]); err != nil {
		return into, ends, err
	}
	at, chunk := interpreter.Pointer(p.state[:], l.frame), interpreter.Pointer(p.state[:], l.chunk)
	if l.cframe {
		if at, err = p.Word(at + l.currentFrame); err != nil {
			return into, ends, err
		}
	}
	p.near.b = nil
	owner := byte(0)
	for range interpreter.MaxDepth {
		if at == 0 {
			if owner == ownedByGenerator { // it just waits again, and has no caller
				err = interpreter.ErrTorn
			}
			ends.Outermost = true
			return into, ends, err
		}
		b, err := p.frame(at, chunk)
		if err != nil {
			return into, ends, err
		}
		switch owner = b[l.owner]; {
		case owner > maxOwner:
			return into, ends, interpreter.ErrTorn
		case owner < ownedByC: // the last bits of references to objects are flags, from 3.14 on
			into = append(into, interpreter.Call{
				At: at, Code: interpreter.Pointer(b, l.executable) &^ 7,
				Instruction: interpreter.Pointer(b, l.instruction),
			})
		}
		at = interpreter.Pointer(b, l.previous)
	}
	return into, ends, nil
}

// frame reads one frame. Most are in a chunk, with their callers before them; those of generators and coroutines are
// not.
func (p *process) frame(at, chunk uint64) ([]byte, error) {
	size := p.layout.frameSize
	if b := p.near.get(at, size); b != nil {
		return b, nil
	}
	if at < chunk || at-chunk > maxChunk || at > math.MaxInt64 {
		return p.Part(at, size)
	}
	from := max(chunk, at+size-min(windowBytes, at+size))
	p.near.at, p.near.b = from, p.near.of[:at+size-from]
	if err := p.Read(from, p.near.b); err != nil { // it is not in the chunk
		p.near.b = nil
		return p.Part(at, size)
	}
	return p.near.get(at, size), nil
}
