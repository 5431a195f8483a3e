// Package judge judges and compares recordings in a process of its own, so that what that takes is bounded, ends with
// its context, and is none of the agent's memory. That process has no rights but those of the agent's user.
package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"slowpath/internal/agent/apart"
	"slowpath/internal/agent/folder"
)

// Options of a judgement.
type Options struct {
	Executable string         // slowpath; empty: the program that runs (/proc/self/exe)
	Folder     *folder.Folder // where the files are
	Recording  string         // the file that is judged
	HTML       string         // where the report is written as a page, which replaces one that is there; empty: nowhere
	Timeout    time.Duration  // 0: DefaultTimeout
	MaxMemory  int64          // bytes; 0: DefaultMaxMemory
	MaxOutput  int64          // bytes of JSON; 0: DefaultMaxOutput
}

// Defaults of Options, and bounds.
const (
	DefaultTimeout   = 60 * time.Second
	DefaultMaxMemory = 512 << 20
	DefaultMaxOutput = 16 << 20

	maxHTML   = 64 << 20 // bytes of a page
	maxStderr = 64 << 10 // bytes of what the process says
	maxReason = 500      // of that, in an error
	// priority is a nice value: of a CPU that another process keeps busy, too, a judgement has a quarter. With the
	// lowest one (19) it would be a seventieth, and a host whose CPUs are busy would have no verdict for half a minute.
	priority = 5
)

func (o Options) withDefaults() Options {
	if o.Executable == "" {
		o.Executable = apart.Executable()
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxMemory <= 0 {
		o.MaxMemory = DefaultMaxMemory
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = DefaultMaxOutput
	}
	return o
}

// Verdict judges a recording, as doctor FILE does. It returns a document slowpath.diagnosis/v1. The page is written as
// a whole, or not at all.
func Verdict(ctx context.Context, o Options) (diagnosisJSON []byte, err error) {
	o = o.withDefaults()
	args := []string{"doctor", named(o.Folder.Path(o.Recording)), "--json"}
	unfinished := ""
	if o.HTML != "" {
		unfinished = o.HTML + ".part"
		_ = o.Folder.Remove(unfinished)
		defer o.Folder.Remove(unfinished)
		args = append(args, "--html", named(o.Folder.Path(unfinished)))
	}
	out, err := o.run(ctx, args, "slowpath.diagnosis/v1")
	if err != nil {
		return nil, fmt.Errorf("judging %s: %w", o.Recording, err)
	}
	if unfinished != "" {
		if err := o.Folder.Rename(unfinished, o.HTML); err != nil {
			return nil, fmt.Errorf("judging %s: its page: %w", o.Recording, err)
		}
	}
	return out, nil
}

// Compare holds two recordings against each other, as compare does. It returns a document slowpath.compare/v1.
func Compare(ctx context.Context, before, after string) (compareJSON []byte, err error) {
	return Options{}.Compare(ctx, before, after)
}

// Compare is the function Compare, with the bounds of o.
func (o Options) Compare(ctx context.Context, before, after string) (compareJSON []byte, err error) {
	out, err := o.withDefaults().run(ctx, []string{"compare", named(before), named(after), "--json"},
		"slowpath.compare/v1")
	if err != nil {
		return nil, fmt.Errorf("comparing %s and %s: %w", before, after, err)
	}
	return out, nil
}

// named is a path that cannot be taken for an option.
func named(path string) string {
	if strings.HasPrefix(path, "-") {
		return "./" + path
	}
	return path
}

// ErrTooLarge says that the process wrote more than it may.
var ErrTooLarge = errors.New("the document is too large")

// run runs slowpath and returns the document that it prints. Whether there are findings, which the exit code says, is
// in the document.
func (o Options) run(ctx context.Context, args []string, schema string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	out, notes := &bounded{most: o.MaxOutput}, &bounded{most: maxStderr, drops: true}
	c := exec.CommandContext(ctx, o.Executable, args...)
	c.Args[0] = "slowpath"
	c.Stdout, c.Stderr = out, notes
	// One CPU is left to it: the rest is for the servers of the host.
	c.Env = apart.Environment("GOMAXPROCS=1", "GOMEMLIMIT="+strconv.FormatInt(o.MaxMemory/4*3, 10))
	c.WaitDelay = time.Second
	err := apart.Run(c, apart.Limits{Nice: priority, Memory: o.MaxMemory, File: maxHTML}, nil)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("it took longer than %v: %w", o.Timeout, ctx.Err())
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.over:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, o.MaxOutput)
	}
	var known struct {
		Schema string `json:"schema"`
	}
	if json.Unmarshal(out.kept.Bytes(), &known) == nil && known.Schema == schema {
		return out.kept.Bytes(), nil
	}
	if why := reason(notes.kept.String()); why != "" {
		return nil, errors.New(why)
	}
	if noMemoryToBegin(err) {
		return nil, errors.New(tooMuchMemory)
	}
	if err == nil {
		err = fmt.Errorf("it printed no %s", schema)
	}
	return nil, err
}

const tooMuchMemory = "it took more memory than it may"

// noMemoryToBegin reports whether a process without a word was ended by a segmentation fault. A Go program says so
// itself, and exits: there was no memory to load the program.
func noMemoryToBegin(err error) bool {
	var e *exec.ExitError
	if !errors.As(err, &e) {
		return false
	}
	status, ok := e.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGSEGV
}

// reason is the error in what the process said, without what a terminal would obey. Other lines say how far it was.
func reason(notes string) (why string) {
	for line := range strings.Lines(notes) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "fatal error: runtime: out of memory") ||
			strings.HasPrefix(line, "runtime: cannot allocate memory") {
			return tooMuchMemory
		}
		text, isError := strings.CutPrefix(line, "slowpath: ")
		if line != "" && (isError || why == "") {
			why = text
		}
	}
	why = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, why)
	if runes := []rune(why); len(runes) > maxReason {
		why = string(runes[:maxReason]) + "…"
	}
	return why
}

// bounded keeps the first bytes that are written. The rest is dropped, or ends the process that writes it.
type bounded struct {
	kept  bytes.Buffer // not embedded: its ReadFrom knows no bound
	most  int64
	drops bool
	over  bool
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	switch room := b.most - int64(b.kept.Len()); {
	case int64(len(p)) <= room:
	case b.drops:
		b.kept.Write(p[:room])
		return len(p), nil
	default:
		b.over = true
		return 0, ErrTooLarge // the pipe is closed: the process cannot write on
	}
	return b.kept.Write(p)
}
