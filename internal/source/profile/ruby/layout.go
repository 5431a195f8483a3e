package ruby

import (
	"fmt"
	"strings"

	"slowpath/internal/source/profile/interpreter"
)

// layout is where things are in the structs of one version of CRuby, in bytes.
type layout struct {
	// in a Ractor (rb_ractor_struct): its place in the list of all, the list of its threads and how many they are, the
	// thread that holds its lock, and the main thread
	listed, threads, holder, main uint64
	// in a thread (rb_thread_struct): its execution context, and the kernel's number, or what has it
	context, number uint64
	native          bool   // number leads to a struct (rb_native_thread)
	frame           uint64 // size of a control frame
	// in the body of an instruction sequence: its table of lines
	lines uint64
	// embedded strings have their length among their flags
	lengthInFlags bool
	firstIsValue  bool // the first line of a function is a VALUE
}

// What all of these versions have in common.
const (
	// in the virtual machine: the list of Ractors, the main one, and its main thread
	vmRactors, vmMain, vmMainThread = 8, 32, 40
	vmBytes                         = vmMainThread + 8
	// in a list, and what is in it
	listNext, listPrevious, listCount = 0, 8, 16
	// in a thread; it begins with its place in the list
	threadRactor, threadVM, threadBytes = 24, 32, 96
	nativeNumber                        = 24
	// in an execution context
	contextStack, contextSize, contextFrame, contextThread, contextBytes = 0, 8, 16, 48, 56
	// in a control frame
	frameInstruction, frameCode, maxFrame = 0, 16, 64
	// in an instruction sequence, and in its body
	codeFlags, codeBody, codeBytes                                  = 0, 16, 24
	bodySize, bodyBegin, bodyPath, bodyName, bodyFirst              = 4, 8, 64, 80, 88
	linesEntries, linesPositions, linesSize, linesTable, linesBytes = 0, 8, 16, 24, 32
	// an entry of the table of lines: a line, a node, events
	entryBytes = 12
)

var (
	layout31 = layout{
		listed: 568, threads: 304, holder: 336, main: 528, context: 40, number: 88, frame: 64, lines: 120,
		lengthInFlags: true, firstIsValue: true,
	}
	layout33 = layout{
		listed: 432, threads: 256, holder: 328, main: 392, context: 48, number: 40, native: true, frame: 56, lines: 112,
	}
)

// layouts by the beginning of ruby_version.
var layouts = map[string]layout{"3.1.": layout31, "3.3.": layout33, "3.4.": layout33}

// errVersion is of versions whose structs are not known.
var errVersion = fmt.Errorf("%w: CRuby 3.1, 3.3 and 3.4 on amd64 are", interpreter.ErrVersion)

// layoutOf is that of a version.
func layoutOf(version string) (layout, error) {
	i := strings.LastIndexByte(version, '.')
	l, known := layouts[version[:i+1]]
	if !known {
		return l, errVersion
	}
	return l, nil
}
