//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"slowpath/internal/diagnose/corpus"
)

// reading are the commands that read a recording.
var reading = []struct{ name, line string }{
	{"doctor", "slowpath doctor x.slowpath"},
	{"report", "slowpath report x.slowpath"},
	{"report --json", "slowpath report x.slowpath --json"},
	{"trace", "slowpath trace x.slowpath"},
}

// recordingCases: recordings that were cut or in which bits have flipped, drawn from a seed, and what is none.
func recordingCases() []faultCase {
	const seeds = 12
	var all []faultCase
	for k, c := range reading {
		for seed := range seeds {
			how, damage := "cut", cut
			if seed%2 == 1 {
				how, damage = "flipped", flip
			}
			all = append(all, faultCase{
				name: fmt.Sprintf("%s %s %d", c.name, how, seed), quick: seed < 2 && k%2 == seed,
				before: func(r *faultRun) { r.damaged(rand.New(rand.NewPCG(15, uint64(seed))), damage) },
				line:   c.line, codes: "0|1|2", says: "x.slowpath|calls|call_id|unseen", lines: 2,
				leaves: []string{"x.slowpath"},
			})
		}
	}
	for name, make := range map[string]func(path string) error{
		"empty":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"text":      func(path string) error { return os.WriteFile(path, []byte("no recording\n"), 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"FIFO":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"device":    func(path string) error { return os.Symlink("/dev/zero", path) },
		"loop":      func(path string) error { return os.Symlink(path, path) },
		"missing":   func(string) error { return nil },
	} {
		for k, c := range reading {
			all = append(all, faultCase{
				name: c.name + " " + name, quick: k == 0, codes: "2", says: `x\.slowpath`, line: c.line,
				before: func(r *faultRun) {
					if err := make(filepath.Join(r.dir, "x.slowpath")); err != nil {
						r.Fatal(err)
					}
				},
				leaves: []string{"x.slowpath"},
			})
		}
	}
	return ofFamily("recordings", all)
}

// damaged makes x.slowpath.
func (r *faultRun) damaged(random *rand.Rand, how func(*rand.Rand, []byte) []byte) {
	r.Helper()
	path := filepath.Join(r.dir, "x.slowpath")
	if err := corpus.Unpack("healthy-idle", path); err != nil {
		r.Fatal(err)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, how(random, body), 0o600); err != nil {
		r.Fatal(err)
	}
}

func cut(random *rand.Rand, body []byte) []byte { return body[:random.IntN(len(body))] }

func flip(random *rand.Rand, body []byte) []byte {
	body = slices.Clone(body)
	for range 1 + random.IntN(40) {
		body[random.IntN(len(body))] ^= byte(1 << random.IntN(8))
	}
	return body
}
