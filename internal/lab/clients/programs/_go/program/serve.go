package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"runtime"
	"sync"
	"time"
)

// Sampling of the profiles of the HTTP service: one of 10 contentions of a mutex, and one sample per 10 µs that
// goroutines block.
const (
	mutexFraction = 10
	blockRate     = 10_000
)

// serve starts the HTTP service: all requests share one client, and each makes a call of the mix. It returns when the
// service listens; the group is done when ctx has ended and all requests have.
func (w *workload) serve(ctx context.Context, lib client) (*sync.WaitGroup, error) {
	var done sync.WaitGroup
	if w.Listen == "" {
		return &done, nil
	}
	l, err := net.Listen("tcp", w.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening for HTTP: %w", err)
	}
	runtime.SetMutexProfileFraction(mutexFraction)
	runtime.SetBlockProfileRate(blockRate)
	server := &http.Server{Handler: w.handler(lib.worker()), ReadHeaderTimeout: 10 * time.Second}
	done.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	done.Go(func() {
		<-ctx.Done()
		soon, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = server.Shutdown(soon) // requests that still run end with the process
	})
	fmt.Fprintln(os.Stderr, "ready", l.Addr())
	return &done, nil
}

func (w *workload) handler(c caller) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(out http.ResponseWriter, _ *http.Request) {
		reply, err := w.call(c)
		if err != nil {
			http.Error(out, err.Error(), http.StatusBadGateway)
			return
		}
		w.decode(reply)
		_, _ = io.WriteString(out, reply) // the client of the request may have left
	})
	mux.HandleFunc("/stats", func(out http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(out).Encode(w.tally.Summary()) // the client of the request may have left
	})
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
