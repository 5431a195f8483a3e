//go:build !linux

package sampler

import "context"

// Sampler needs Linux.
type Sampler struct{}

// Load gives ErrLinux.
func Load(Options) (*Sampler, error) { return nil, ErrLinux }

// Start does nothing.
func (*Sampler) Start([]Target) error { return ErrLinux }

// Follow does nothing.
func (*Sampler) Follow(Target) error { return ErrLinux }

// Forget does nothing.
func (*Sampler) Forget(int) {}

// Run does nothing.
func (*Sampler) Run(context.Context) error { return ErrLinux }

// Counts are none.
func (*Sampler) Counts() (Counts, error) { return Counts{}, ErrLinux }

// Close does nothing.
func (*Sampler) Close() error { return nil }
