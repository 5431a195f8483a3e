// Package judge judges and compares recordings in a process of its own, so that what that takes is bounded, ends with
// its context, and is none of the agent's memory.
package judge

import (
	"context"
	"errors"
	"time"
)

// Options of a judgement.
type Options struct {
	Executable string        // slowpath; empty: the program that runs (/proc/self/exe)
	Recording  string        // the file that is judged
	HTML       string        // where the report is written as a page, which replaces one that is there; empty: nowhere
	Timeout    time.Duration // 0: DefaultTimeout
	MaxMemory  int64         // bytes; 0: DefaultMaxMemory
	MaxOutput  int64         // bytes of JSON; 0: DefaultMaxOutput
}

// Defaults of Options.
const (
	DefaultTimeout   = 60 * time.Second
	DefaultMaxMemory = 512 << 20
	DefaultMaxOutput = 16 << 20
)

// Verdict judges a recording, as doctor FILE does. It returns a document slowpath.diagnosis/v1.
func Verdict(ctx context.Context, o Options) (diagnosisJSON []byte, err error) {
	return nil, errors.ErrUnsupported
}

// Compare holds two recordings against each other, as compare does. It returns a document slowpath.compare/v1.
func Compare(ctx context.Context, before, after string) (compareJSON []byte, err error) {
	return nil, errors.ErrUnsupported
}
