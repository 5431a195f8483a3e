package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"slowpath/internal/report/layout"
)

// status is what stderr shows of a command that runs: what goes on, for how many seconds, and after the first Ctrl-C
// what that leads to. On a terminal it is one live line. Elsewhere it is a line after 10 s, 20 s, 40 s and so on, which
// are few, also of a watch of a day. A command that ends before shows nothing.
type status struct {
	mu     sync.Mutex
	what   string // goes on; empty: nothing is shown
	since  time.Time
	shown  time.Time
	live   bool        // the live line is on the terminal
	within bool        // others have begun a line on stderr, and not ended it
	tick   *time.Timer // says again how long it has taken
	began  time.Time   // of the first that was shown
	next   time.Duration
	answer string      // what the first Ctrl-C leads to
	left   string      // what the second leaves
	ends   atomic.Bool // the command ends at once then
	paging atomic.Bool // a pager has the terminal
	ownLog atomic.Bool // a service, whose stderr is a log: no line but those of it
}

const (
	// silent is after how long a line says how long it has taken. Some lines change each second themselves.
	silent = 1200 * time.Millisecond
	// shownApart is how often the line changes: some steps are short.
	shownApart = 100 * time.Millisecond
	// LinesApart is when a stderr that is no terminal has the first line. A load has one that often.
	LinesApart = 10 * time.Second
	// answerTime bounds what is written after a signal: nobody may read stderr any more, or have stopped the terminal.
	answerTime = 100 * time.Millisecond
)

// Progress shows what a command does now, and how far it is.
func (p *Program) Progress(format string, args ...any) { p.doing(false, fmt.Sprintf(format, args...)) }

// Working shows a step that begins; the function that it returns is progressDone.
func (p *Program) Working(format string, args ...any) (done func()) {
	p.doing(true, fmt.Sprintf(format, args...))
	return p.ProgressDone
}

func (p *Program) doing(atOnce bool, what string) {
	s := &p.status
	s.mu.Lock()
	defer s.mu.Unlock()
	if what == s.what {
		return
	}
	s.what, s.since, s.within = what, time.Now(), false
	if s.began.IsZero() {
		s.began, s.next = s.since, LinesApart
	}
	again := silent
	if !atOnce && time.Since(s.shown) < shownApart {
		again = shownApart
	} else {
		p.showStatus()
	}
	if s.tick == nil {
		s.tick = time.AfterFunc(again, p.showAgain)
	} else {
		s.tick.Reset(again)
	}
}

// ProgressDone takes the live line away: what follows takes no time, or prints lines of its own.
func (p *Program) ProgressDone() {
	s := &p.status
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tick != nil {
		s.tick.Stop()
	}
	s.what = ""
	p.clearStatus()
}

func (p *Program) showAgain() {
	s := &p.status
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.what != "" {
		p.showStatus()
		s.tick.Reset(time.Second)
	}
}

// showStatus writes the line. It never takes a second line of a terminal, which could not be taken back.
func (p *Program) showStatus() {
	s := &p.status
	s.shown = time.Now()
	line := layout.OneLine(s.what)
	if took := time.Since(s.since); took >= time.Second {
		line = fmt.Sprintf("%d s, %s", int(took.Seconds()), line)
	}
	switch took := time.Since(s.began); {
	case p.OnTerminal() && !s.within:
		fmt.Fprint(p.rawStderr(), "\r\x1b[K"+layout.Shorten(line, p.LiveWidth(), "..."))
		s.live = true
	case !p.OnTerminal() && took >= s.next:
		fmt.Fprintln(p.rawStderr(), line)
		s.next = 2 * took
	}
}

func (p *Program) clearStatus() {
	if p.status.live {
		fmt.Fprint(p.rawStderr(), "\r\x1b[K")
		p.status.live = false
	}
}

// OnInterrupt says what the first Ctrl-C leads to from now on, such as "the verdict of what was seen so far follows".
func (p *Program) OnInterrupt(answer string) {
	p.status.mu.Lock()
	defer p.status.mu.Unlock()
	p.status.answer = answer
	p.status.ends.Store(false)
}

// InterruptEnds has the first Ctrl-C end the command at once: there is nothing to keep, and nothing to be undone.
func (p *Program) InterruptEnds(answer string) {
	p.OnInterrupt(answer)
	p.status.ends.Store(true)
}

// interrupted answers the first Ctrl-C.
func (p *Program) interrupted(ends bool) {
	s := &p.status
	if s.ownLog.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	line, again := "stopping", " (Ctrl-C again ends at once)"
	if ends {
		line, again = "stopped", ""
	}
	if s.answer != "" {
		line += ": " + s.answer
	}
	switch {
	case s.within:
		fmt.Fprintln(p.rawStderr())
	case p.OnTerminal():
		fmt.Fprint(p.rawStderr(), "\r\x1b[K") // the live line, and the ^C that the terminal has added
	}
	s.within, s.live = false, false
	p.printLine(p.rawStderr(), line+again)
}

// OwnLog says that stderr is the log of a service: no line but those of it.
func (p *Program) OwnLog() { p.status.ownLog.Store(true) }

// MayLeave is what is said where the second Ctrl-C ends the command.
func (p *Program) MayLeave(what string) {
	p.status.mu.Lock()
	defer p.status.mu.Unlock()
	p.status.left = what
}

// endedAtOnce says what is left where a command did not end in good order.
func (p *Program) endedAtOnce() {
	p.ProgressDone()
	p.status.mu.Lock()
	defer p.status.mu.Unlock()
	if p.status.left != "" {
		p.printLine(p.rawStderr(), p.status.left)
	}
}

// shortly runs what writes to stderr, and does not wait for it if nobody reads.
func shortly(write func()) {
	done := make(chan struct{})
	go func() { defer close(done); write() }()
	select {
	case <-done:
	case <-time.After(answerTime):
	}
}

// besideStatus is a stderr that has the live line out of the way of what others write.
type besideStatus struct {
	*Program
	file *os.File
}

func (b besideStatus) Write(p []byte) (int, error) {
	s := &b.status
	s.mu.Lock()
	defer s.mu.Unlock()
	b.clearStatus()
	n, err := b.file.Write(p)
	if s.within = !bytes.HasSuffix(p, []byte("\n")); !s.within && s.what != "" && b.OnTerminal() {
		b.showStatus()
	}
	return n, err
}

// rawStderr is stderr without the status, which holds its lock.
func (p *Program) rawStderr() io.Writer {
	if b, ok := p.Stderr.(besideStatus); ok {
		return b.file
	}
	return p.Stderr
}
