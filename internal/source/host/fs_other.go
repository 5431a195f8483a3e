//go:build !linux

package host

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

var errLinux = errors.New("the host source reads /proc and needs Linux: run slowpath on the server's own host, or " +
	"use --no-host")

func openRaw(path string) (File, error) { return os.Open(path) }

func readWhole(path string) ([]byte, error) { return os.ReadFile(path) }

func inNetNS(int, func()) error { return errLinux }

func openDiag(int) (SocketTable, error) { return nil, errLinux }

// Locate needs Linux.
func Locate(FS, Query) (Process, error) { return Process{}, errLinux }

// CallersOptions are for WatchCallers.
type CallersOptions struct {
	FS    FS
	Clock clock.Clock
	Sink  recording.Sink
	Nodes map[netip.AddrPort]string
	Every time.Duration
}

// WatchCallers needs Linux.
func WatchCallers(context.Context, CallersOptions) error { return errLinux }

// Watch needs Linux.
func Watch(context.Context, Options) error { return errLinux }
