// A client program of the lab (docs/clients.md). The files of _go/program are the common part; library.go of each
// module calls its library. The package lab/protocol is a copy of slowpath's internal/lab/clients/programs/protocol.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"lab/protocol"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

// Errors with an exit code of their own (protocol.UnsupportedExit, ConnectExit).
var (
	errUnsupported = errors.New("not supported by this library")
	errConnect     = errors.New("connecting")
)

func main() {
	in := bufio.NewReader(os.Stdin)
	err := run(in)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	switch {
	case errors.Is(err, errUnsupported):
		os.Exit(protocol.UnsupportedExit)
	case errors.Is(err, errConnect):
		os.Exit(protocol.ConnectExit)
	}
	os.Exit(2)
}

// read reads the options of one line.
func read(in *bufio.Reader, c *counts) (*workload, error) {
	w := &workload{counts: c}
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &w.Options)
	}
	if err == nil {
		err = w.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the options from standard input: %w", err)
	}
	for _, c := range w.Commands {
		for range max(c.Weight, 1) {
			w.commands = append(w.commands, c)
		}
	}
	return w, nil
}

// run ends after the duration, at SIGTERM, or when standard input ends, which is when the parent process ends.
func run(in *bufio.Reader) error {
	w, err := read(in, &counts{})
	if err != nil {
		return err
	}
	if w.Procs > 0 {
		runtime.GOMAXPROCS(w.Procs)
	}
	if w.lib, err = open(w); err != nil {
		return err
	}
	time.Sleep(w.FirstCallAfter)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	start := time.Now().Add(w.Warmup)
	w.tally, w.slices = protocol.NewTally(start), protocol.NewSlices(start, w.Slice)
	p := &program{workload: w}
	p.now.Store(w)
	go func() {
		p.follow(in)
		stop()
	}()
	if w.Duration > 0 {
		timed, cancel := context.WithTimeout(ctx, w.Warmup+w.Duration)
		defer cancel()
		ctx = timed
	}
	served, err := w.serve(ctx, w.lib)
	if err != nil {
		return err
	}
	go p.holdLock(ctx)
	worked := make(chan struct{})
	go func() {
		p.work(ctx)
		close(worked)
	}()
	<-ctx.Done()
	select {
	case <-worked:
	case <-time.After(time.Second): // a worker may still wait for DNS or a connection
	}
	served.Wait()
	return p.report()
}

// report prints the summary.
func (p *program) report() error {
	w := p.now.Load()
	sum := w.tally.Summary()
	sum.Slices = w.slices.Sums(time.Now())
	sum.Library, sum.Dials, sum.Pool = library(modulePath), w.dials.Load(), w.lib.pool()
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) == nil {
		sum.CPU = time.Duration(use.Utime.Nano() + use.Stime.Nano())
	}
	return json.NewEncoder(os.Stdout).Encode(sum)
}

// library returns a module and its version in this build.
func library(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == module {
			return module + " " + dep.Version
		}
	}
	return module
}
