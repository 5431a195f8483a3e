package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is how long after the first signal another is the same: timeout(1) signals its child and then the whole
// process group, and some parents pass on a Ctrl-C that the terminal has sent to both.
const sameSignal = 300 * time.Millisecond

// afterHangup bounds the end of a command whose terminal is gone, since nobody can end it a second time. The removal of
// a load's keys takes cleanUpTime at most.
const afterHangup = 5 * time.Minute

// ExitInterrupted is a shell's code of a program that SIGINT ended.
const ExitInterrupted = 128 + int(syscall.SIGINT)

// interruptible gives a context that the first Ctrl-C ends (or SIGTERM, or the SIGHUP of a terminal that is gone),
// which ends a watch in good order; a line says so at once. The second ends the program at once, without a verdict, and
// so does the first where there is nothing to be kept or undone.
func (p *Program) interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	// Taken and not ignored: a write to a pipe without reader is then an error like any other, and servers of the lab
	// inherit the default.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		first := <-signals
		// a service reads its configuration again, and Ctrl-C in a pager is the pager's
		for first == syscall.SIGHUP && p.status.ownLog.Load() || first == os.Interrupt && p.status.paging.Load() {
			first = <-signals
		}
		began := time.Now()
		ends := p.status.ends.Load()
		shortly(func() { p.interrupted(ends) })
		if !ends {
			cancel()
			p.awaitSecond(first, began, signals)
		}
		shortly(p.endedAtOnce)
		p.Scratch.removeAll()
		os.Exit(ExitInterrupted)
	}()
	return ctx, cancel
}

// awaitSecond returns when somebody does not want to wait for the end that the first signal has begun.
func (p *Program) awaitSecond(first os.Signal, began time.Time, signals <-chan os.Signal) {
	var nobodyWaits <-chan time.Time
	if first == syscall.SIGHUP {
		nobodyWaits = time.After(afterHangup)
	}
	for {
		select {
		case again := <-signals:
			// of a lost terminal several come, from the kernel and from the shell: nobody is impatient
			if again != syscall.SIGHUP && time.Since(began) >= sameSignal && !p.status.paging.Load() {
				return
			}
		case <-nobodyWaits:
			return
		}
	}
}
