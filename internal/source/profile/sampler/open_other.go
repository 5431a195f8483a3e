//go:build !linux

package sampler

import "context"

// Sampler needs Linux.
type Sampler struct{}

// Open gives ErrLinux.
func Open(Options) (*Sampler, error) { return nil, ErrLinux }

// Run does nothing.
func (*Sampler) Run(context.Context) error { return ErrLinux }

// Counts are none.
func (*Sampler) Counts() (Counts, error) { return Counts{}, ErrLinux }

// Close does nothing.
func (*Sampler) Close() error { return nil }

// ReadKernel does nothing.
func (*Sampler) ReadKernel() {}
