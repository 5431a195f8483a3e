// One of the lab's client programs: this file has the workload, main.go of the same module the library that is called. The package
// lab/clients is a copy of slowpath's internal/lab/clients/options.go.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"lab/clients"
)

// caller makes the calls of one worker.
type caller interface {
	// call returns the reply, or "" where it is no string; a missing key is no error.
	call(args []any) (string, error)
}

// samplesKept bounds the memory: the times of the latest calls are kept, of 8 bytes each.
const samplesKept = 1 << 20

type workload struct {
	clients.Options
	commands []clients.Command // each as often as it weighs
	dials    atomic.Int64
	ready    sync.Once

	mu    sync.Mutex
	sum   clients.Summary
	times []time.Duration
}

func main() {
	in := bufio.NewReader(os.Stdin)
	w := &workload{}
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &w.Options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reading the options from standard input:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	go func() {
		_, _ = io.Copy(io.Discard, in) // until who started this closes it, or dies
		stop()
	}()
	if w.Procs > 0 {
		runtime.GOMAXPROCS(w.Procs)
	}
	for _, c := range w.Commands {
		for range max(c.Weight, 1) {
			w.commands = append(w.commands, c)
		}
	}
	start := time.Now()
	lib := open(w)
	var wg sync.WaitGroup
	for id := range w.Workers {
		wg.Go(func() { w.work(ctx, id, lib.worker()) })
	}
	wg.Wait()
	lib.stats(&w.sum)
	w.print(time.Since(start))
}

// work makes calls at the worker's share of the rate. One that fell behind does not make up for it with a burst.
func (w *workload) work(ctx context.Context, id int, c caller) {
	gap := time.Duration(0)
	if w.Rate > 0 {
		gap = time.Duration(float64(w.Workers) / w.Rate * float64(time.Second))
	}
	next := time.Now().Add(gap * time.Duration(id) / time.Duration(w.Workers))
	for sleep(ctx, time.Until(next)) {
		args := w.command()
		start := time.Now()
		reply, err := c.call(args)
		w.count(time.Since(start), err)
		w.decode(reply)
		step := gap
		if w.Random {
			step = time.Duration(rand.ExpFloat64() * float64(gap))
		}
		if next = next.Add(step); time.Since(next) > gap {
			next = time.Now()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (w *workload) command() []any {
	c := w.commands[rand.IntN(len(w.commands))]
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		if strings.Contains(a, "{n}") {
			a = strings.ReplaceAll(a, "{n}", strconv.Itoa(rand.IntN(max(w.Keys, 1))))
		}
		args[i] = a
	}
	return args
}

// decode is what an application does with a reply: it makes objects of it, and something else of those.
func (w *workload) decode(reply string) {
	for range w.DecodesPerCall {
		var doc any
		if json.Unmarshal([]byte(reply), &doc) == nil {
			_, _ = json.Marshal(doc) // only its time is wanted
		}
	}
}

func (w *workload) count(d time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.times) < samplesKept {
		w.times = append(w.times, d)
	} else {
		w.times[w.sum.Calls%samplesKept] = d
	}
	w.sum.Calls++
	w.sum.Max = max(w.sum.Max, d)
	if err != nil {
		w.sum.Errors++
		w.sum.LastError = err.Error()
		return
	}
	w.ready.Do(func() { fmt.Fprintln(os.Stderr, "ready") })
}

func (w *workload) print(ran time.Duration) {
	slices.Sort(w.times)
	if n := len(w.times); n > 0 {
		w.sum.P50, w.sum.P99 = w.times[n/2], w.times[n*99/100]
	}
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) == nil {
		w.sum.CPU = time.Duration(use.Utime.Nano() + use.Stime.Nano())
	}
	w.sum.Ran, w.sum.Dials = ran, w.dials.Load()
	_ = json.NewEncoder(os.Stdout).Encode(w.sum) // nobody reads it: nobody to tell
}
