package interpreter

// What is kept of the code of functions at most.
const (
	maxCodes     = 4096
	maxCodeBytes = 16 << 20
	// CheckEvery is in how many calls of Stacks the code of a frame that stays where it is, is read once.
	CheckEvery = 16
)

// Key tells the code of functions apart by what its object has in it. Where one was freed, another may be at its
// address, which comes first.
type Key [6]uint64

// Code is what is known of the code of a function.
type Code struct {
	Name, File string
	// Begin and End are those of its instructions. What calls it is at none beyond them.
	Begin, End uint64
	// Line is that of an instruction; where it is not known, that at which the function begins.
	Line func(instruction uint64) (line int, known bool)
	// Bytes that it takes, about.
	Bytes int
	// Passing code was made by the program ("<string>"): it comes and goes, and is read each time.
	Passing bool
	// the last answer: a thread that waits is at the same place each time
	at   uint64
	last Frame
}

// check is when the code of a call was read last.
type check struct {
	*Code
	call int
}

// codeOf is the code of a call. It is read at most once in CheckEvery calls while the call stays where it is.
func (p *Process) codeOf(c Call) (*Code, error) {
	if known, is := p.checked[c]; is && p.calls-known.call < CheckEvery && !known.Passing {
		return known.Code, nil
	}
	code, err := p.readCode(c.Code)
	if err != nil {
		return nil, err
	}
	if len(p.checked) == maxCodes {
		clear(p.checked)
	}
	p.checked[c] = check{code, p.calls}
	return code, nil
}

// readCode reads the code at an address; its texts once.
func (p *Process) readCode(at uint64) (*Code, error) {
	key, err := p.runtime.Key(at)
	if err != nil {
		return nil, err
	}
	if c, known := p.codes[key]; known {
		return c, nil
	}
	c, err := p.runtime.Code(key)
	if err != nil {
		return nil, err
	}
	if len(p.codes) == maxCodes || p.codeBytes > maxCodeBytes {
		clear(p.codes)
		clear(p.checked)
		p.codeBytes = 0
	}
	p.codes[key] = c
	p.codeBytes += c.Bytes
	return c, nil
}

// frame is a call of the function, at an instruction.
func (c *Code) frame(instruction uint64) (Frame, error) {
	if instruction < c.Begin || instruction > c.End {
		return Frame{}, ErrTorn
	}
	if c.at != instruction || c.last.File == "" {
		c.at, c.last = instruction, Frame{Function: c.Name, File: c.File}
		line, known := c.Line(instruction)
		c.last.Line, c.last.Begin = line, !known
	}
	return c.last, nil
}
