package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
	"slowpath/internal/source"
	"slowpath/internal/source/profile"
	"slowpath/internal/topology/survey"
	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// Exit codes.
const (
	exitClean    = 0
	exitFindings = 1
	exitUsage    = 2 // the command line, or a file that it names
	exitConnect  = 3
	exitMissing  = 4
	exitInternal = 70 // anything else: EX_SOFTWARE of sysexits.h
)

// usageError marks an error of the command line or of a file that it names.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func usage(err error) error { return usageError{err} }

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// errMissing marks a privilege or kernel feature that is missing.
var errMissing = errors.New("missing")

// exitCode finds the exit code of an error.
func exitCode(err error) int {
	var used usageError
	var dial *target.Error
	var login *session.Error
	var refusal *resp.ServerError
	switch {
	case errors.As(err, &used), errors.Is(err, recording.ErrNotRecording), errors.Is(err, target.ErrBadTarget),
		errors.Is(err, target.ErrCertFile),
		errors.Is(err, profile.ErrNotPprof), errors.Is(err, protocol.ErrSummary): // of a program that the user named
		return exitUsage
	case errors.As(err, &dial), errors.As(err, &login), errors.As(err, &refusal), errors.Is(err, resp.ErrNotRedis),
		errors.Is(err, survey.ErrNoMap), errors.Is(err, cluster.ErrMalformed), errors.Is(err, cluster.ErrTooLarge),
		errors.Is(err, profile.ErrUnreachable), errors.Is(err, clients.ErrConnect),
		errors.Is(err, context.Canceled): // by Ctrl-C, before the connection stood
		return exitConnect
	case errors.Is(err, errMissing), errors.Is(err, source.ErrMaySample):
		return exitMissing
	default:
		return exitInternal
	}
}

// explain prints an error as one line. Texts of servers and file names in it cannot drive the terminal.
func (a *app) explain(err error) {
	text := err.Error()
	if errors.Is(err, context.Canceled) {
		text = "stopped before anything was seen (" + text + ")"
	}
	text = strings.ReplaceAll(text, "\n", "; ") // what errors.Join puts between two
	a.say("slowpath: " + text)
}

// say prints a line to stderr, which a terminal gets broken at words.
func (a *app) say(text string) {
	a.progressDone()
	a.printLine(a.stderr, layout.OneLine(text))
}

// printLine is say to stderr, which may be that without the status.
func (a *app) printLine(w io.Writer, line string) {
	if a.onTerminal() {
		line = folded(line, a.liveWidth()+1)
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

// readerGone recognises that nobody reads stdout any more, and that nothing else went wrong: the reader of a pipe has
// left, as head does when it has seen what it wanted, or the terminal is gone.
func readerGone(err error) bool {
	if joined, several := err.(interface{ Unwrap() []error }); several {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !readerGone(e) })
	}
	var file *fs.PathError // a socket's is a net.OpError
	return errors.As(err, &file) && (errors.Is(file, syscall.EPIPE) ||
		errors.Is(file, syscall.EIO) && file.Path == os.Stdout.Name())
}
