//go:build !linux

package tap

import (
	"context"
	"net/netip"

	"slowpath/internal/recording"
)

// Tap is a running tap.
type Tap struct{}

// Open says that there is no such source on this system.
func Open(Options) (*Tap, error) { return nil, ErrLinux }

// Load says that there is no such source on this system.
func Load(Options, int) (*Tap, error) { return nil, ErrLinux }

// HooksLater is of no matter on this system.
func HooksLater() bool { return true }

// Watch does nothing.
func (t *Tap) Watch([]Node) error { return ErrLinux }

// Run does nothing.
func (t *Tap) Run(context.Context) error { return ErrLinux }

// Restarted does nothing.
func (t *Tap) Restarted(string, int) {}

// Close does nothing.
func (t *Tap) Close() error { return nil }

// Own does nothing.
func (t *Tap) Own(uint64) {}

// Observe does nothing.
func (t *Tap) Observe(string, netip.AddrPort) {}

// Blind lists what cannot be seen.
func (t *Tap) Blind() []recording.BlindSpot { return nil }
