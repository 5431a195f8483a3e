package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// Exit codes.
const (
	ExitClean    = 0
	ExitFindings = 1
	ExitUsage    = 2 // the command line, or a file that it names
	ExitUntold   = 2 // what was measured does not tell whether a limit holds
	ExitConnect  = 3
	ExitMissing  = 4
	ExitInternal = 70 // anything else: EX_SOFTWARE of sysexits.h
)

// codedError is an error whose exit code is known.
type codedError struct {
	error
	code int
}

func (c codedError) Unwrap() error { return c.error }

// WithCode gives an error its exit code.
func WithCode(code int, err error) error { return codedError{err, code} }

// Usage marks an error of the command line or of a file that it names.
func Usage(err error) error { return WithCode(ExitUsage, err) }

func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// ErrMissing marks a privilege or kernel feature that is missing.
var ErrMissing = errors.New("missing")

// MissingLinux says that this system lacks what a command or a flag needs.
func MissingLinux(what, why string) error {
	return fmt.Errorf("%s needs Linux, which is %w here (%s): %s", what, ErrMissing, runtime.GOOS, why)
}

// MissingTap is MissingLinux of what the tap is needed for.
func MissingTap(what string) error { return MissingLinux(what, "calls are seen by eBPF programs") }

// ExitCode finds the exit code of an error.
func ExitCode(err error) int {
	var coded codedError
	var dial *target.Error
	var login *session.Error
	var refusal *resp.ServerError
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, recording.ErrNotRecording), errors.Is(err, target.ErrBadTarget),
		errors.Is(err, target.ErrCertFile):
		return ExitUsage
	case errors.As(err, &dial), errors.As(err, &login), errors.As(err, &refusal), errors.Is(err, resp.ErrNotRedis),
		errors.Is(err, cluster.ErrMalformed), errors.Is(err, cluster.ErrTooLarge), errors.Is(err, cluster.ErrNoNodes),
		errors.Is(err, context.Canceled): // by Ctrl-C, before the connection stood
		return ExitConnect
	case errors.Is(err, ErrMissing):
		return ExitMissing
	default:
		return ExitInternal
	}
}

// Explain prints an error as one line. Texts of servers and file names in it cannot drive the terminal.
func (p *Program) Explain(err error) {
	text := err.Error()
	if errors.Is(err, context.Canceled) {
		text = "stopped before anything was seen (" + text + ")"
	}
	text = strings.ReplaceAll(text, "\n", "; ") // what errors.Join puts between two
	p.Say("slowpath: " + text)
}

// Say prints a line to stderr, which a terminal gets broken at words.
func (p *Program) Say(text string) {
	p.ProgressDone()
	p.printLine(p.Stderr, layout.OneLine(text))
}

// printLine is say to stderr, which may be that without the status.
func (p *Program) printLine(w io.Writer, line string) {
	if p.OnTerminal() {
		line = folded(line, p.LiveWidth()+1)
	}
	fmt.Fprintln(w, line)
}

// folded breaks an error at words for a terminal. The command that it ends in stays in one line, to be copied.
func folded(text string, width int) string {
	if layout.Width(text) <= width {
		return text
	}
	said, command := text, ""
	if i := strings.LastIndex(text, ": slowpath "); i >= 0 {
		said, command = text[:i+1], "\n  "+text[i+2:]
	}
	return layout.Fill(said, width) + command
}

// ReaderGone recognises that nobody reads stdout any more, and that nothing else went wrong: the reader of a pipe has
// left, as head does when it has seen what it wanted, or the terminal is gone.
func ReaderGone(err error) bool {
	if joined, several := err.(interface{ Unwrap() []error }); several {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !ReaderGone(e) })
	}
	var file *fs.PathError // a socket's is a net.OpError
	return errors.As(err, &file) && (errors.Is(file, syscall.EPIPE) ||
		errors.Is(file, syscall.EIO) && file.Path == os.Stdout.Name())
}
