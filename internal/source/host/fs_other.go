//go:build !linux

package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

var errLinux = fmt.Errorf("the host source reads /proc and needs Linux: %w", errors.ErrUnsupported)

// Spaces need Linux.
type Spaces struct{}

// HoldSpaces needs Linux.
func HoldSpaces(FS) *Spaces { return nil }

// Close does nothing.
func (*Spaces) Close() {}

func (*Spaces) in(int, func()) error { return errLinux }

func openDiag(*Spaces, int) (SocketTable, error) { return nil, errLinux }

// Locate needs Linux.
func Locate(FS, Query) (Process, error) { return Process{}, errLinux }

// Behind needs Linux.
func Behind(FS, int, int) (Process, error) { return Process{}, errLinux }

// LoopThread needs Linux.
func LoopThread(_ FS, pid int) int { return pid }

// Peer is an address that a process is connected to.
type Peer struct{ Addr netip.AddrPort }

// Connected answers an error.
func Connected(FS, int) (Process, []Peer, error) { return Process{}, nil, errLinux }

// AwaitEnd returns false when ctx has ended: that a process ends is not seen here.
func AwaitEnd(ctx context.Context, _ FS, _ int) bool {
	<-ctx.Done()
	return false
}

// CallersOptions are for WatchCallers.
type CallersOptions struct {
	FS        FS
	Clock     clock.Clock
	Sink      recording.Sink
	Nodes     map[netip.AddrPort]string
	Every     time.Duration
	CostShare int64
	Pace      *clock.Pace
	Found     func(pid int)
}

// WatchCallers needs Linux.
func WatchCallers(context.Context, CallersOptions) error { return errLinux }

// WatchCallerThreads needs Linux.
func WatchCallerThreads(context.Context, CallersOptions) error { return errLinux }

// Watch needs Linux.
func Watch(context.Context, Options) error { return errLinux }

// NetworkChanges need Linux.
type NetworkChanges struct{ Unheard []recording.BlindSpot }

// Close does nothing.
func (*NetworkChanges) Close() {}

// HearNetwork hears nothing.
func HearNetwork() *NetworkChanges { return &NetworkChanges{} }

// Watch does nothing.
func (*NetworkChanges) Watch(context.Context, clock.Clock, recording.Sink) {}
