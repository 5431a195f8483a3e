// A client program of the lab (docs/clients.md). The files of _go/program are the common part; library.go of each
// module calls its library. The package lab/protocol is a copy of slowpath's internal/lab/clients/programs/protocol.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	w, err := newWorkload(in)
	if err == nil {
		err = w.run(in)
	}
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

func newWorkload(in *bufio.Reader) (*workload, error) {
	w := &workload{}
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
func (w *workload) run(in io.Reader) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	if w.Duration > 0 {
		timed, cancel := context.WithTimeout(ctx, w.Warmup+w.Duration)
		defer cancel()
		ctx = timed
	}
	if w.Procs > 0 {
		runtime.GOMAXPROCS(w.Procs)
	}
	lib, err := open(w)
	if err != nil {
		return err
	}
	w.tally = protocol.NewTally(time.Now().Add(w.Warmup))
	served, err := w.serve(ctx, lib)
	if err != nil {
		return err
	}
	worked := make(chan struct{})
	go func() {
		w.work(ctx, lib)
		close(worked)
	}()
	<-ctx.Done()
	select {
	case <-worked:
	case <-time.After(time.Second): // a worker may still wait for DNS or a connection
	}
	served.Wait()
	sum := w.tally.Summary()
	sum.Library, sum.Dials, sum.Pool = library(modulePath), w.dials.Load(), lib.pool()
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
