package stacks

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
)

//go:embed frames.tsv
var builtin string

//go:embed server.tsv
var server string

//go:embed caller.tsv
var caller string

// States of a stack.
const (
	PoolWait  = "pool-wait"
	LockWait  = "lock-wait"
	Dial      = "dial"
	TLS       = "tls"
	Handshake = "handshake"
	Redirect  = "redirect"
	Send      = "send"
	Reply     = "reply"
	Exec      = "exec"
	Idle      = "idle"
)

// States of a stack of a server's main thread.
const (
	Loop    = "loop"    // the event loop's own work
	Command = "command" // a command
	Serving = "serving" // reading requests, writing replies, waiting for either
)

var states = []string{
	PoolWait, LockWait, Dial, TLS, Handshake, Redirect, Send, Reply, Exec, Idle, Loop, Command, Serving,
}

// Meaning is what frames say of a stack.
type Meaning struct {
	ID      string // stable: causes ask for it
	State   string
	Library string // empty: the runtime's own
	What    string // what is waited for
	frames  []frame
}

// Table is meanings, in the order in which they are tried.
type Table []Meaning

// Bounds of a table: it may come from a file.
const (
	maxTableBytes = 1 << 20
	maxMeanings   = 2000
)

// ErrTable says that a text is no table of frames.
var ErrTable = errors.New("not a table of frames")

// Builtin is the table of the libraries that this program knows.
func Builtin() Table { return mustParse(builtin) }

// IDs of meanings of Server that are more than names.
const (
	Tracking       = "tracking"
	KeyspaceEvents = "keyspace-events"
	Defrag         = "defrag"
	Published      = "publish"
	RDBLoad        = "rdb-load"
	Written        = "write"
	Expire         = "expire"
	Evict          = "evict"
)

// Server is the table of the functions of a Redis or Valkey server.
func Server() Table { return mustParse(server) }

// Caller is the table of the functions in which programs that call are busy.
func Caller() Table { return mustParse(caller) }

func mustParse(text string) Table {
	t, err := Parse(text)
	if err != nil {
		panic("stacks: " + err.Error()) // a test reads it
	}
	return t
}

// Parse reads a table: see frames.tsv for its form. Its errors match ErrTable and have the line.
func Parse(text string) (Table, error) {
	if len(text) > maxTableBytes {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTable, maxTableBytes)
	}
	var t Table
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrTable, number, err)
		}
		if t = append(t, m); len(t) > maxMeanings {
			return nil, fmt.Errorf("%w: more than %d lines", ErrTable, maxMeanings)
		}
	}
	return t, nil
}

func parseLine(line string) (m Meaning, err error) {
	columns := strings.Split(line, "\t")
	if len(columns) != 5 {
		return m, fmt.Errorf("%d columns; write id, state, library, what, frames with a tab between", len(columns))
	}
	m = Meaning{ID: columns[0], State: columns[1], Library: columns[2], What: columns[3]}
	if m.ID == "" || m.What == "" {
		return m, errors.New("id and what must not be empty")
	}
	if !slices.Contains(states, m.State) {
		return m, fmt.Errorf("state %.40q; known are %s", m.State, strings.Join(states, ", "))
	}
	for part := range strings.SplitSeq(columns[4], " > ") {
		for i, direct := range strings.Split(part, " >> ") {
			if direct = strings.TrimSpace(direct); direct == "" {
				return m, errors.New("a frame is empty; write functions with \" > \" or \" >> \" between")
			}
			m.frames = append(m.frames, frame{strings.Split(direct, "%"), i > 0})
		}
	}
	return m, nil
}

// Of is the meaning of a stack; false where nothing is known of its frames.
func (t Table) Of(frames []string) (Meaning, bool) {
	for _, m := range t {
		if m.fits(frames) {
			return m, true
		}
	}
	return Meaning{}, false
}

// fits searches for the patterns in order, those of direct callees together.
func (m Meaning) fits(frames []string) bool { return fit(m.frames, frames) }

func fit(patterns []frame, frames []string) bool {
	if len(patterns) == 0 {
		return true
	}
	together := 1 // patterns of frames that follow each other
	for together < len(patterns) && patterns[together].direct {
		together++
	}
	for i := 0; i+together <= len(frames); i++ {
		if inRow(patterns[:together], frames[i:]) {
			// A later place would leave fewer frames for the rest.
			return fit(patterns[together:], frames[i+together:])
		}
	}
	return false
}

func inRow(patterns []frame, frames []string) bool {
	for i, p := range patterns {
		if !p.fits(frames[i]) {
			return false
		}
	}
	return true
}

// frame is a pattern of a function's name: its literal parts between the wildcards.
type frame struct {
	parts  []string
	direct bool // called by the frame before it, with none between
}

func (f frame) fits(name string) bool {
	p := f.parts
	rest, ok := strings.CutPrefix(name, p[0])
	if !ok {
		return false
	}
	last := len(p) - 1
	if last == 0 {
		return rest == ""
	}
	for _, part := range p[1:last] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, p[last])
}

// Frame is the first frame of a stack that the meaning's first pattern fits: where the library was entered, as far
// as the table has it.
func (m Meaning) Frame(frames []string) string {
	for _, f := range frames {
		if len(m.frames) > 0 && m.frames[0].fits(f) {
			return f
		}
	}
	return ""
}
