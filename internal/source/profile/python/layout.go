package python

import (
	"encoding/binary"
	"fmt"
)

// layout is where things are in the structs of one version of CPython, in bytes.
type layout struct {
	interpreters uint64 // first one, in _PyRuntime
	// in an interpreter (PyInterpreterState)
	next    uint64
	threads uint64 // first thread state
	gil     uint64 // pointer to the state of the GIL; with gilInRuntime it is that itself, in _PyRuntime
	// in the state of the GIL
	holder, locked uint64
	gilInRuntime   bool
	// in a thread state (PyThreadState); see also threadPrevious
	frame, nativeID, chunk uint64
	cframe                 bool   // frame leads to a struct
	currentFrame           uint64 // in which this is the frame
	// in a frame (_PyInterpreterFrame)
	frameSize, previous, executable, instruction, owner uint64
	// in a code object
	filename, qualname, lines, firstLine, code uint64
	// of the header of a string; one that is not ASCII has more
	ascii, compact uint64
}

// What all of these versions have in common.
const (
	// in a thread state
	threadPrevious, threadNext, threadInterpreter = 0, 8, 16
	// in all objects; those with a length; bytes
	objectType, objectLength, bytesData = 8, 16, 32
	stringState                         = 32
)

// Owners of frames. From C on they are no frames of Python, but between those.
const ownedByGenerator, ownedByC, maxOwner = 1, 3, 4

var layout311 = layout{
	interpreters: 40, threads: 16, gil: 360, holder: 8, locked: 16, gilInRuntime: true,
	frame: 56, cframe: true, currentFrame: 8, nativeID: 160, chunk: 296,
	frameSize: 80, executable: 32, previous: 48, instruction: 56, owner: 69,
	filename: 112, qualname: 128, lines: 136, firstLine: 72, code: 184, ascii: 48, compact: 72,
}

var layout312 = layout{
	interpreters: 40, threads: 72, gil: 384, holder: 8, locked: 16,
	frame: 56, cframe: true, currentFrame: 0, nativeID: 144, chunk: 232,
	frameSize: 80, executable: 0, previous: 8, instruction: 56, owner: 70,
	filename: 112, qualname: 128, lines: 136, firstLine: 68, code: 192, ascii: 40, compact: 56,
}

// published is where parts of _Py_DebugOffsets begin in each version, in words of 8 bytes: of an interpreter from its
// GIL on, of a thread state, from its number of the thread on, of a frame, of a code object.
var published = map[uint64]struct{ gil, thread, nativeID, frame, code int }{
	minor(13): {14, 19, 25, 28, 34},
	minor(14): {15, 22, 28, 31, 39},
	minor(15): {15, 22, 31, 39, 47},
}

const (
	cookie         = "xdebugpy" // what _Py_DebugOffsets begins with
	publishedBytes = 64 * 8     // as many of it as are needed
	// No struct is larger than this, in bytes: an interpreter, any other.
	maxInterpreter, maxStruct = 1 << 20, 1 << 10
)

// minor is the beginning of Py_Version of 3.x: 0x030b02f0 is 3.11.2.
func minor(x uint64) uint64 { return 3<<8 | x }

// layoutOf is that of a version, by the beginning of _PyRuntime.
func layoutOf(version uint64, runtime []byte) (l layout, err error) {
	switch version >> 16 {
	case minor(11):
		return layout311, nil
	case minor(12):
		return layout312, nil
	}
	at, known := published[version>>16]
	if !known {
		return l, errVersion
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(runtime[8*i:]) }
	switch {
	case string(runtime[:8]) != cookie || word(1) != version:
		return l, fmt.Errorf("%w: _PyRuntime does not begin with its offsets", errVersion)
	case word(2) != 0:
		return l, fmt.Errorf("%w: it was built without the GIL", errVersion)
	}
	l = layout{
		interpreters: word(5), next: word(8), threads: word(9),
		gil: word(at.gil), locked: word(at.gil+3) - word(at.gil+1), holder: word(at.gil+4) - word(at.gil+1),
		frame: word(at.thread + 4), nativeID: word(at.nativeID), chunk: word(at.nativeID + 1),
		frameSize: word(at.frame), previous: word(at.frame + 1), executable: word(at.frame + 2),
		instruction: word(at.frame + 3), owner: word(at.frame + 5),
		filename: word(at.code + 1), qualname: word(at.code + 3), lines: word(at.code + 4),
		firstLine: word(at.code + 5), code: word(at.code + 9), ascii: 40, compact: 56,
	}
	same := word(at.thread+1) == threadPrevious && word(at.thread+2) == threadNext &&
		word(at.thread+3) == threadInterpreter
	if !same || max(l.interpreters, l.next, l.threads, l.gil) > maxInterpreter || l.frameSize > maxStruct ||
		max(l.locked, l.holder, l.frame, l.nativeID, l.chunk, l.filename, l.qualname, l.lines, l.firstLine,
			l.code) > maxStruct || max(l.previous, l.executable, l.instruction, l.owner)+8 > l.frameSize {
		return l, fmt.Errorf("%w: the offsets in _PyRuntime cannot be", errVersion)
	}
	return l, nil
}
