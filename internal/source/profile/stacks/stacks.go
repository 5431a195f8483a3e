// Package stacks holds profiles as stacks of frames, and knows what frames of well-known client libraries mean: that a
// goroutine or thread waits for a lock, for a connection of a pool, for a dial, for a reply.
//
// It reads and writes the format of pprof (profile.proto), which all profiles of a recording have, whoever made them.
package stacks

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/google/pprof/profile"
)

// Bounds of what is read: profiles come from the network and from files.
const (
	MaxBytes   = 32 << 20 // of a profile, unpacked
	maxStacks  = 200_000
	maxFrames  = 512 // of one stack; the runtime of Go gives 128 at most
	maxName    = 512 // bytes of a frame's name
	noFunction = "?" // a frame without a symbol
)

// ErrNotProfile says that bytes are no profile in the format of pprof.
var ErrNotProfile = errors.New("not a pprof profile")

// Profile is stacks with values.
type Profile struct {
	Types  []Type
	Stacks []Stack
}

// Type says what one value of each stack counts, in pprof's words: goroutine/count, delay/nanoseconds, cpu/nanoseconds.
type Type struct{ Name, Unit string }

// Stack is the functions of one goroutine or thread, from the outermost caller to where it is.
type Stack struct {
	Frames []string
	Values []int64 // one for each Type
	TimeNs int64   // when it was seen, nanoseconds since the epoch; 0 where the profile does not have it
	TID    int64   // the thread; 0 where the profile does not have it
}

// Numeric labels of a sample: when it was seen, and its thread.
const (
	timeLabel = "time_ns"
	tidLabel  = "tid"
)

// Read takes a profile in the format of pprof, gzipped or not. Its error matches ErrNotProfile.
func Read(body []byte) (*Profile, error) {
	if len(body) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes are more than %d", ErrNotProfile, len(body), MaxBytes)
	}
	raw, err := unpack(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotProfile, err)
	}
	p, err := profile.ParseUncompressed(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotProfile, err)
	}
	if err := p.CheckValid(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotProfile, err)
	}
	return fold(p), nil
}

func fold(p *profile.Profile) *Profile {
	out := &Profile{}
	for _, t := range p.SampleType {
		out.Types = append(out.Types, Type{t.Type, t.Unit})
	}
	for _, s := range p.Sample[:min(len(p.Sample), maxStacks)] {
		stack := Stack{Frames: framesOf(s), Values: s.Value}
		if at := s.NumLabel[timeLabel]; len(at) == 1 {
			stack.TimeNs = at[0]
		}
		if tid := s.NumLabel[tidLabel]; len(tid) == 1 {
			stack.TID = tid[0]
		}
		out.Stacks = append(out.Stacks, stack)
	}
	return out
}

// framesOf reverses the locations of a sample: pprof has where the program is first, and of a location its inlined
// functions first.
func framesOf(s *profile.Sample) []string {
	var frames []string
	for i := len(s.Location) - 1; i >= 0; i-- {
		lines := s.Location[i].Line
		if len(lines) == 0 {
			frames = append(frames, noFunction)
		}
		for j := len(lines) - 1; j >= 0; j-- {
			frames = append(frames, name(lines[j].Function))
		}
		if len(frames) >= maxFrames {
			return frames[:maxFrames]
		}
	}
	return frames
}

// name is that of a function without the directory that it was vendored into: the library is the same.
func name(f *profile.Function) string {
	if f == nil || f.Name == "" {
		return noFunction
	}
	n := f.Name[:min(len(f.Name), maxName)]
	if _, vendored, ok := strings.Cut(n, "/vendor/"); ok {
		return vendored
	}
	return n
}

// Column is the index of a type by its name, -1 where the profile has none.
func (p *Profile) Column(name string) int {
	for i, t := range p.Types {
		if t.Name == name {
			return i
		}
	}
	return -1
}

// Total adds up one column.
func (p *Profile) Total(column int) (sum int64) {
	for _, s := range p.Stacks {
		if column >= 0 && column < len(s.Values) {
			sum += s.Values[column]
		}
	}
	return sum
}

// Write gives a profile in the format of pprof, gzipped.
func Write(p *Profile) ([]byte, error) {
	out := &profile.Profile{}
	for _, t := range p.Types {
		out.SampleType = append(out.SampleType, &profile.ValueType{Type: t.Name, Unit: t.Unit})
	}
	at := map[string]*profile.Location{}
	for _, s := range p.Stacks {
		sample := &profile.Sample{Value: s.Values}
		if s.TimeNs != 0 {
			sample.NumLabel, sample.NumUnit = map[string][]int64{timeLabel: {s.TimeNs}},
				map[string][]string{timeLabel: {"nanoseconds"}}
			if s.TID != 0 {
				sample.NumLabel[tidLabel], sample.NumUnit[tidLabel] = []int64{s.TID}, []string{"thread"}
			}
		}
		for i := len(s.Frames) - 1; i >= 0; i-- {
			sample.Location = append(sample.Location, location(out, at, s.Frames[i]))
		}
		out.Sample = append(out.Sample, sample)
	}
	var b bytes.Buffer
	if err := out.Write(&b); err != nil {
		return nil, fmt.Errorf("writing a profile: %w", err)
	}
	return b.Bytes(), nil
}

func location(p *profile.Profile, at map[string]*profile.Location, name string) *profile.Location {
	if l := at[name]; l != nil {
		return l
	}
	id := uint64(len(p.Location) + 1)
	f := &profile.Function{ID: id, Name: name, SystemName: name}
	l := &profile.Location{ID: id, Line: []profile.Line{{Function: f}}}
	p.Function, p.Location, at[name] = append(p.Function, f), append(p.Location, l), l
	return l
}
