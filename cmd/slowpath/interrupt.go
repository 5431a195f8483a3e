package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// sameSignal is how long after the first signal another is the same: timeout(1) signals its child and then the whole
// process group, and some parents pass on a Ctrl-C that the terminal has sent to both.
const sameSignal = 300 * time.Millisecond

// exitInterrupted is a shell's code of a program that SIGINT ended.
const exitInterrupted = 128 + int(syscall.SIGINT)

// interruptible gives a context that the first Ctrl-C (or SIGTERM) ends, which ends a watch in good order. The second
// ends the program at once, without a verdict.
func (a *app) interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// Taken and not ignored: a write to a pipe without reader is then an error like any other, and servers of the lab
	// inherit the default.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		<-signals
		first := time.Now()
		cancel()
		for time.Since(first) < sameSignal {
			<-signals
		}
		a.progressDone()
		a.scratch.remove()
		os.Exit(exitInterrupted)
	}()
	return ctx, cancel
}

// scratch is the directory of a recording that nobody asked to keep.
type scratch struct {
	mu  sync.Mutex
	dir string
}

func (s *scratch) make() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err := os.MkdirTemp("", "slowpath-")
	s.dir = dir
	return dir, err
}

func (s *scratch) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}
