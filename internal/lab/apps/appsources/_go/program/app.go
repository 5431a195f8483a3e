package main

import (
	"context"
	"fmt"
	"lab/meter"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// untilTerminated ends with SIGTERM.
func untilTerminated() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	return ctx
}

// must ends the program with an error of one line.
func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run calls act at the application's rate, in some goroutines with exponential gaps, and reports, until ctx ends.
func run(ctx context.Context, callers int, act func(*meter.Meter)) {
	rate, err := strconv.ParseFloat(os.Getenv("APP_RATE"), 64)
	must(err)
	m := meter.New(os.Stdout)
	for range callers {
		go func() {
			for {
				gap := rand.ExpFloat64() * float64(callers) / rate
				select {
				case <-ctx.Done():
					return
				case <-time.After(time.Duration(gap * float64(time.Second))):
					act(m)
				}
			}
		}()
	}
	must(m.Report(ctx.Done()))
}

// serve is the HTTP service, until ctx ends.
func serve(ctx context.Context, page http.HandlerFunc) {
	s := &http.Server{Addr: os.Getenv("APP_LISTEN"), Handler: page}
	context.AfterFunc(ctx, func() { s.Close() })
	if err := s.ListenAndServe(); err != http.ErrServerClosed {
		must(err)
	}
}
