package ruby

import "slowpath/internal/source/profile/interpreter"

// maxStackWords of a thread, in words. The default is 128 Ki (RUBY_THREAD_VM_STACK_SIZE).
const maxStackWords = 1 << 27

// Walk reads the control frames of a thread, which lie one after the other, the innermost first, at the end of its
// stack.
func (p *process) Walk(t interpreter.Thread, into []interpreter.Call) (
	calls []interpreter.Call, ends interpreter.Ends, err error,
) {
	if err := p.readThread(t.At); err != nil {
		return into, ends, err
	}
	context := interpreter.Pointer(p.thread[:], p.layout.context)
	b, err := p.Part(context, contextBytes)
	if err != nil {
		return into, ends, err
	}
	stack, words := interpreter.Pointer(b, contextStack), interpreter.Pointer(b, contextSize)
	at := interpreter.Pointer(b, contextFrame)
	if words > maxStackWords || at < stack || at-stack > 8*words || interpreter.Pointer(b, contextThread) != t.At {
		return into, ends, interpreter.ErrTorn
	}
	size, rest := p.layout.frame, 8*words-(at-stack)
	if rest%size != 0 || rest == 0 {
		return into, ends, interpreter.ErrTorn
	}
	all := rest/size - 1 // the outermost one is no call
	n := min(all, interpreter.MaxDepth)
	frames := p.frames[:n*size]
	if err := p.Read(at, frames); err != nil {
		return into, ends, err
	}
	since, err := p.Word(context + contextFrame)
	if err != nil {
		return into, ends, err
	}
	ends = interpreter.Ends{Outermost: n == all, Innermost: since == at}
	if since > at { // those further in have returned, or others are in their place
		frames = frames[min(since-at, n*size):]
		at = since
	}
	if uint64(len(frames))%size != 0 {
		return into, ends, interpreter.ErrTorn
	}
	for ; len(frames) > 0; frames, at = frames[size:], at+size {
		instruction, code := interpreter.Pointer(frames, frameInstruction), interpreter.Pointer(frames, frameCode)
		if instruction != 0 && code != 0 { // else it is a function in C
			into = append(into, interpreter.Call{At: at, Code: code, Instruction: instruction})
		}
	}
	return into, ends, nil
}
