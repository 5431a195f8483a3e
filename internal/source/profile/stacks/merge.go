package stacks

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/google/pprof/profile"
)

// unpack ungzips where there is something to ungzip, to MaxBytes at most: a small file may hold any length of zeros.
func unpack(body []byte) ([]byte, error) {
	if len(body) < 2 || body[0] != 0x1f || body[1] != 0x8b {
		return body, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	raw, err := io.ReadAll(io.LimitReader(z, MaxBytes+1))
	if err == nil && len(raw) > MaxBytes {
		err = fmt.Errorf("more than %d bytes unpacked", MaxBytes)
	}
	return raw, err
}

// WithoutLabels is a profile without what a program adds to its samples and to the whole (pprof.Do, comments): that may
// be a user, a token, an address. Its error matches ErrNotProfile.
func WithoutLabels(body []byte) ([]byte, error) {
	if _, err := Read(body); err != nil {
		return nil, err
	}
	raw, err := unpack(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotProfile, err)
	}
	p, err := profile.ParseUncompressed(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotProfile, err)
	}
	p.Comments, p.DropFrames, p.KeepFrames, p.DocURL = nil, "", "", ""
	for _, s := range p.Sample {
		s.Label, s.NumLabel, s.NumUnit = nil, nil, nil
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return nil, fmt.Errorf("writing a profile: %w", err)
	}
	return b.Bytes(), nil
}

// Growth is what profile a has in addition to the earlier profile b of the same program: Go counts mutex and block
// delays from the start of the process.
func Growth(b, a []byte) ([]byte, error) {
	return combine([][]byte{a, b}, []float64{1, -1})
}

// Sum adds profiles of one kind up. When each stack was seen is left out, so that equal ones become one.
func Sum(all ...[]byte) ([]byte, error) {
	scale := make([]float64, len(all))
	for i := range scale {
		scale[i] = 1
	}
	return combine(all, scale)
}

func combine(all [][]byte, scale []float64) ([]byte, error) {
	var ps []*profile.Profile
	for i, body := range all {
		raw, err := unpack(body)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotProfile, err)
		}
		p, err := profile.ParseUncompressed(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotProfile, err)
		}
		p.Scale(scale[i])
		for _, s := range p.Sample {
			for _, label := range []string{timeLabel, tidLabel} {
				delete(s.NumLabel, label)
				delete(s.NumUnit, label)
			}
		}
		ps = append(ps, p)
	}
	sum, err := profile.Merge(ps)
	if err != nil {
		return nil, fmt.Errorf("adding up profiles: %w", err)
	}
	var b bytes.Buffer
	if err := sum.Write(&b); err != nil {
		return nil, fmt.Errorf("writing a profile: %w", err)
	}
	return b.Bytes(), nil
}

// Move changes when the stacks of a profile were seen, as those of another host's clock. Its error matches
// ErrNotProfile.
func Move(body []byte, to func(int64) int64) ([]byte, error) {
	p, err := Read(body)
	if err != nil {
		return nil, err
	}
	for i := range p.Stacks {
		if p.Stacks[i].TimeNs != 0 {
			p.Stacks[i].TimeNs = to(p.Stacks[i].TimeNs)
		}
	}
	return Write(p)
}
