package ruby

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/source/profile/interpreter"
	"slowpath/internal/source/profile/interpreter/memorytest"
)

// Places in the memory of made.
const (
	madeVersion, madeVariable, madeBSS, madeBSSEnd = 0x10000, 0x10020, 0x10100, 0x10200
	madeVM, madeRactor, madeThread, madeOther      = 0x11000, 0x12000, 0x13000, 0x13800
	madeNative, madeContext, madeStack             = 0x14000, 0x15000, 0x16000
	madeWords                                      = 0x1000 / 8 // of the stack
	madeCode, madeText, madeLines, madeEnd         = 0x18000, 0x1a000, 0x1c000, 0x20000
	madeTID                                        = 7
)

// made is the memory of a Ruby with a thread, which runs what its test says, and another one.
type made struct {
	memorytest.Memory
	*process
	*interpreter.Process
	top uint64 // of the stack
}

// newMade is of Ruby 3.3.8, or 3.1.2.
func newMade(t *testing.T, version string) *made {
	t.Helper()
	m := &made{top: madeStack + 8*madeWords}
	m.Spans = []memorytest.Span{{At: madeVersion, Bytes: make([]byte, madeEnd-madeVersion)}}
	m.PutText(madeVersion, version+"\x00")
	l, err := layoutOf(version)
	if err != nil {
		t.Fatal(err)
	}
	m.Put(madeVariable, madeVM)
	m.Put(madeVM+vmMain, madeRactor)
	m.Put(madeVM+vmMainThread, madeThread)
	m.listOf(madeVM+vmRactors, madeRactor+l.listed)
	m.listOf(madeRactor+l.threads, madeThread, madeOther)
	m.Put(madeRactor+l.main, madeThread)
	m.Put(madeRactor+l.holder, madeOther)
	for i, thread := range []uint64{madeThread, madeOther} {
		n := uint64(i)
		m.Put(thread+threadRactor, madeRactor)
		m.Put(thread+threadVM, madeVM)
		m.Put(thread+l.context, madeContext+0x100*n)
		if l.native {
			m.Put(thread+l.number, madeNative+0x100*n)
			m.Put(madeNative+0x100*n+nativeNumber, madeTID+n)
		} else {
			m.Put(thread+l.number, madeTID+n)
		}
		m.Put(madeContext+0x100*n+contextThread, thread)
	}
	m.Put(madeContext+contextStack, madeStack)
	m.Put(madeContext+contextSize, madeWords)
	m.identifies(t, madeVariable)
	m.call(0, 0) // the outermost one is none
	return m
}

// identifies opens it, by the variable or without.
func (m *made) identifies(t *testing.T, variable uint64) {
	t.Helper()
	r, version, err := Language.Identify(&m.Memory, []uint64{madeVersion, variable, madeBSS, madeBSSEnd})
	if err != nil {
		t.Fatal(err)
	}
	m.process, m.Process = r.(*process), interpreter.NewProcess(version, r)
}

// listOf makes a list.
func (m *made) listOf(head uint64, of ...uint64) {
	m.Put(head+listCount, uint64(len(of)))
	previous := head
	for _, at := range append(of, head) {
		m.Put(previous+listNext, at)
		m.Put(at+listPrevious, previous)
		previous = at
	}
}

// call has the thread call the i-th function, at its instruction.
func (m *made) call(i, instruction uint64) {
	m.top -= m.layout.frame
	m.Put(m.top+frameInstruction, 0)
	m.Put(m.top+frameCode, 0)
	if i > 0 {
		m.Put(m.top+frameInstruction, m.begin(i)+8*instruction)
		m.Put(m.top+frameCode, madeCode+i*0x200)
	}
	m.Put(madeContext+contextFrame, m.top)
}

// begin is the first instruction of the i-th function.
func (m *made) begin(i uint64) uint64 { return 0x500000 + i*0x1000 }

// code makes the i-th function, whose first line is 10*i.
func (m *made) code(i uint64, name string) (at uint64) {
	at = madeCode + i*0x200
	body, text, lines := at+0x40, madeText+i*0x100, madeLines+i*0x100
	m.Put(at+codeFlags, typeISeq)
	m.Put(at+codeBody, body)
	m.Put(body, 20<<32) // instructions
	m.Put(body+bodyBegin, m.begin(i))
	m.Put(body+bodyPath, text+0x80)
	m.Put(body+bodyName, text)
	m.Put(body+bodyFirst, 10*i)
	if m.layout.firstIsValue {
		m.Put(body+bodyFirst, 20*i+1)
	}
	m.text(text, name)
	m.Put(text+0x80, typeArray|flag1) // the path and the real path
	m.Put(text+0x90, text)
	m.Put(body+m.layout.lines+linesEntries, lines)
	m.Put(body+m.layout.lines+linesSize, 2)
	m.Put(body+m.layout.lines+linesTable, lines+0x40)
	m.Put(lines, 10*i+1)
	m.Put(lines+entryBytes, 10*i+2)
	m.Put(lines+0x40, 1|1<<7|1<<14|2<<21|2<<28|2<<35|2<<42|2<<49|2<<56) // the second begins at 3
	m.Put(lines+0x48, 2|2<<7|2<<14|2<<21|2<<28|2<<35|2<<42|2<<49|2<<56)
	m.Put(lines+0x50, 2|2<<7|2<<14|2<<21|2<<28|2<<35|2<<42|2<<49|2<<56)
	return at
}

// text makes a string, which is embedded.
func (m *made) text(at uint64, s string) {
	if m.layout.lengthInFlags {
		m.Put(at, typeString|uint64(len(s))<<lengthShift)
		m.PutText(at+objectData, s)
		return
	}
	m.Put(at, typeString)
	m.Put(at+stringLength, uint64(len(s)))
	m.PutText(at+stringText, s)
}

// usual has inner, which is called by a function in C, which is called by outer.
func (m *made) usual() {
	m.code(1, "outer")
	m.code(2, "inner")
	m.call(1, 2)
	m.call(0, 0)
	m.call(2, 4)
}

// read gives the functions of the thread.
func (m *made) read(t *testing.T) (functions string, s interpreter.Sample) {
	t.Helper()
	m.Reads = 0
	return memorytest.Functions(t, m.Process, madeTID)
}

// TestUsual: two functions of a thread that waits, or holds the lock, in each layout.
func TestUsual(t *testing.T) {
	for _, version := range []string{"3.1.2", "3.3.8"} {
		m := newMade(t, version)
		m.usual()
		_, s := m.read(t)
		want := []interpreter.Frame{
			{Function: "inner", File: "inner", Line: 22}, {Function: "outer", File: "outer", Line: 11},
		}
		if len(s.Stacks) != 1 || !slices.Equal(s.Stacks[0].Frames, want) || s.Stacks[0].Moved || s.Stacks[0].HoldsLock {
			t.Errorf("%s: %+v", version, s)
		}
		m.Put(madeRactor+m.layout.holder, madeThread)
		if _, s := m.read(t); len(s.Stacks) != 1 || !s.Stacks[0].HoldsLock {
			t.Errorf("%s: it has the lock: %+v", version, s)
		}
	}
}

// TestWithoutVariable: the virtual machine is found among variables without a name.
func TestWithoutVariable(t *testing.T) {
	m := newMade(t, "3.3.8")
	m.usual()
	m.Put(madeBSS+8, madeThread) // it is none
	m.Put(madeBSS+0x18, madeVM)
	m.identifies(t, 0)
	if got, _ := m.read(t); got != "inner outer" {
		t.Errorf("%q", got)
	}
}

// TestReturnsMeanwhile: the innermost function has returned when the stack has been read.
func TestReturnsMeanwhile(t *testing.T) {
	m := newMade(t, "3.3.8")
	m.usual()
	inner := m.top
	m.Before = func(at uint64) {
		if at == inner { // its frame is read
			m.Put(madeContext+contextFrame, inner+2*m.layout.frame)
		} else if at == madeThread {
			m.Put(madeContext+contextFrame, inner)
		}
	}
	if got, s := m.read(t); got != "outer" || !s.Stacks[0].Moved {
		t.Errorf("%q, %+v", got, s)
	}
}

// TestHostile: what no interpreter has.
func TestHostile(t *testing.T) {
	huge := uint64(1) << 62
	body := uint64(madeCode + 0x400 + 0x40)
	name := uint64(madeText + 0x200)
	for what, c := range map[string]struct {
		make func(*made)
		want string
		lost int
	}{
		"a stack nowhere":       {func(m *made) { m.Put(madeContext+contextFrame, huge) }, "", 1},
		"a frame before it":     {func(m *made) { m.Put(madeContext+contextFrame, madeStack-56) }, "", 1},
		"a frame after it":      {func(m *made) { m.Put(madeContext+contextFrame, madeStack+8*madeWords+56) }, "", 1},
		"no frame":              {func(m *made) { m.Put(madeContext+contextFrame, madeStack+8*madeWords) }, "", 1},
		"half a frame":          {func(m *made) { m.Put(madeContext+contextFrame, m.top+8) }, "", 1},
		"an endless stack":      {func(m *made) { m.Put(madeContext+contextSize, huge) }, "", 1},
		"another one's context": {func(m *made) { m.Put(madeContext+contextThread, madeOther) }, "", 1},
		"no context":            {func(m *made) { m.Put(madeThread+m.layout.context, 0) }, "", 1},
		"code that is none":     {func(m *made) { m.Put(madeCode+0x400+codeFlags, typeString) }, "", 1},
		"an odd place of code":  {func(m *made) { m.Put(m.top+frameCode, madeCode+0x401) }, "", 1},
		"code without a body":   {func(m *made) { m.Put(madeCode+0x400+codeBody, 0) }, "", 1},
		"an instruction of another function": {func(m *made) {
			m.Put(m.top+frameInstruction, m.begin(1))
		}, "", 1},
		"code without end":    {func(m *made) { m.Put(body, huge) }, "", 1},
		"a name that is none": {func(m *made) { m.Put(name, typeArray) }, "", 1},
		"an endless name":     {func(m *made) { m.Put(name+stringLength, huge) }, "long", 0},
		"a name elsewhere": {func(m *made) {
			m.Put(name, typeString|flag1)
			m.Put(name+stringText, huge)
		}, "", 1},
		"a path that is no string": {func(m *made) { m.Put(name+0x90, madeVM) }, "", 1},
		"lines without end":        {func(m *made) { m.Put(body+m.layout.lines+linesSize, 1<<31) }, "inner outer", 0},
		"no lines":                 {func(m *made) { m.Put(body+m.layout.lines+linesSize, 0) }, "inner outer", 0},
		"lines nowhere":            {func(m *made) { m.Put(body+m.layout.lines+linesEntries, huge) }, "", 1},
		"no table of lines":        {func(m *made) { m.Put(body+m.layout.lines+linesTable, 0) }, "inner outer", 0},
		"ranks beyond the lines":   {func(m *made) { m.Put(madeLines+0x240, ^uint64(0)) }, "inner outer", 0},
		"a thread that was freed":  {func(m *made) { m.Put(madeThread+listPrevious, madeCode) }, "", 0},
		"another thread's number":  {func(m *made) { m.Put(madeNative+nativeNumber, 99) }, "", 0},
		"no number":                {func(m *made) { m.Put(madeThread+m.layout.number, 0) }, "", 0},
		"threads in a ring":        {func(m *made) { m.Put(madeOther+listNext, madeThread) }, "inner outer", 0},
		"a thread that is next":    {func(m *made) { m.Put(madeOther+listNext, madeOther) }, "inner outer", 0},
		"Ractors in a ring": {func(m *made) {
			m.Put(madeRactor+m.layout.listed, madeRactor+m.layout.listed)
		}, "inner outer", 0},
		"no virtual machine anymore": {func(m *made) { m.Put(madeVM+vmRactors, 0) }, "", 0},
	} {
		m := newMade(t, "3.3.8")
		m.usual()
		c.make(m)
		got, s := m.read(t)
		if c.want == "long" {
			got, c.want = fmt.Sprint(len([]rune(strings.TrimSuffix(got, " outer")))), fmt.Sprint(interpreter.MaxText)
		}
		if got != c.want || s.Lost != c.lost {
			t.Errorf("%s: %q, %d lost", what, got, s.Lost)
		}
		if m.Reads > memorytest.MostReads(1) {
			t.Errorf("%s: %d reads", what, m.Reads)
		}
	}
}

// TestRefusedVersions: versions that are not known, and structs that are not those of their version.
func TestRefusedVersions(t *testing.T) {
	for what, c := range map[string]struct {
		make func(*made)
		want string
	}{
		"older":                {func(m *made) { m.PutText(madeVersion, "3.0.7\x00") }, "3.0.7"},
		"between":              {func(m *made) { m.PutText(madeVersion, "3.2.7\x00") }, "3.2.7"},
		"newer":                {func(m *made) { m.PutText(madeVersion, "13.3.8\x00") }, "13.3.8"},
		"no version":           {func(m *made) { m.PutText(madeVersion, "3.3.\x1b[2J") }, "is none"},
		"without dots":         {func(m *made) { m.PutText(madeVersion, "\x00") }, "not known"},
		"another main thread":  {func(m *made) { m.Put(madeRactor+m.layout.main, madeOther) }, "laid out"},
		"another Ractor":       {func(m *made) { m.Put(madeThread+threadRactor, madeVM) }, "laid out"},
		"another machine":      {func(m *made) { m.Put(madeThread+threadVM, madeRactor) }, "laid out"},
		"another context":      {func(m *made) { m.Put(madeContext+contextThread, madeOther) }, "laid out"},
		"a list with a gap":    {func(m *made) { m.Put(madeOther+listPrevious, madeOther) }, "laid out"},
		"a list that is short": {func(m *made) { m.Put(madeRactor+m.layout.threads+listCount, 3) }, "laid out"},
		"Ractors without it":   {func(m *made) { m.listOf(madeVM+vmRactors, madeOther+m.layout.listed) }, "laid out"},
	} {
		m := newMade(t, "3.3.8")
		c.make(m)
		for _, variable := range []uint64{madeVariable, 0} {
			m.Put(madeBSS, madeVM)
			_, _, err := Language.Identify(&m.Memory, []uint64{madeVersion, variable, madeBSS, madeBSSEnd})
			if !errors.Is(err, interpreter.ErrVersion) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	m := newMade(t, "3.3.8")
	for _, at := range [][]uint64{
		{madeVersion, 0, madeBSS, madeVersion}, {madeVersion, 0, madeBSS, madeBSS + maxBSS + 8}, {madeVersion, 0, 0, 0},
	} {
		if _, _, err := Language.Identify(&m.Memory, at); !errors.Is(err, interpreter.ErrVersion) {
			t.Errorf("%x: %v", at, err)
		}
	}
}

// TestText: strings of each kind; what does not print.
func TestText(t *testing.T) {
	m := newMade(t, "3.3.8")
	for raw, want := range map[string]string{
		"a\x1bb\n": "a?b?", "größe": "größe", "\xff\xc3": "??", "": "", "\xef\xbf\xbd": "?",
	} {
		m.text(madeText, raw)
		if got, err := m.process.text(madeText); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
		m.Put(madeText, typeString|flag1)
		m.Put(madeText+stringText, madeLines)
		m.PutText(madeLines, raw)
		if got, err := m.process.text(madeText); got != want || err != nil {
			t.Errorf("elsewhere: %q, %v, want %q", got, err, want)
		}
	}
}

// TestLines: a function of 2000 instructions, with a line for each third; and tables that are cut.
func TestLines(t *testing.T) {
	const size = 2000
	l := lines{first: 5}
	ranks := make([]uint64, immediateWords+(size-immediate+blockBits-1)/blockBits*perBlock)
	for at := range uint64(size) { // as succ_index_table_create does
		if at%3 == 0 {
			l.lines = append(l.lines, int32(100+at))
		}
		rank := uint64(len(l.lines))
		if at < immediate {
			ranks[at/9] |= rank << (at % 9 * 7)
			continue
		}
		block := ranks[immediateWords+(at-immediate)/blockBits*perBlock:][:perBlock]
		in := (at - immediate) % blockBits
		before := rank
		if at%3 == 0 {
			before--
		}
		switch {
		case in == 0:
			block[0] = before
		case in%64 == 0:
			block[1] |= (before - block[0]) << (9 * (in/64 - 1))
		}
		if at%3 == 0 {
			block[2+in/64] |= 1 << (in % 64)
		}
	}
	l.ranks = ranks
	for at := range uint64(size) {
		if got, known := l.of(at + 1); got != int(100+at-at%3) || !known {
			t.Fatalf("instruction %d: %d, %v", at, got, known)
		}
	}
	if line, known := l.of(0); line != 100 || known {
		t.Errorf("it just begins: %d, %v", line, known)
	}
	for cut := range ranks {
		l.ranks = ranks[:cut]
		for at := range uint64(size + 9) {
			l.of(at)
		}
	}
	l.lines, l.ranks = l.lines[:1], nil
	if line, known := l.of(77); line != 100 || !known {
		t.Errorf("one line: %d, %v", line, known)
	}
}

// FuzzLines: any table ends.
func FuzzLines(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint64(70))
	f.Fuzz(func(t *testing.T, raw []byte, next uint64) {
		l := lines{first: 1}
		for ; len(raw) >= 8; raw = raw[8:] {
			l.lines, l.ranks = append(l.lines, int32(raw[0])), append(l.ranks, interpreter.Pointer(raw, 0))
		}
		if line, known := l.of(next); !known && line != l.first && next > 0 {
			t.Errorf("%d", line)
		}
	})
}
