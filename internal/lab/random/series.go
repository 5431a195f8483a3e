package random

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"slowpath/internal/lab/grade"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
)

// Series is a number of runs whose seeds follow each other. Its directory keeps the recording and the result of each,
// so that a series can be continued, and judged again.
type Series struct {
	Dir       string
	Seed      uint64
	N         int
	Server    servers.Name // draws this version only; empty: any
	Version   string
	JudgeOnly bool // makes no run
	Record    Recorder
	Done      func(Run) // after each run
}

// ErrNothingKept is that of a directory without results.
var ErrNothingKept = errors.New("has no result of a drawn scenario")

// Kept tells which seeds a directory has results of: the first, and how many there are from it to the last.
func Kept(dir string) (first uint64, n int, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0, err
	}
	var last uint64
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".json")
		seed, err := strconv.ParseUint(name, 10, 64)
		if !ok || err != nil {
			continue
		}
		if n == 0 || seed < first {
			first = seed
		}
		n, last = n+1, max(last, seed)
	}
	if n == 0 {
		return 0, 0, fmt.Errorf("%s %w", dir, ErrNothingKept)
	}
	return first, int(last - first + 1), nil
}

// stored is the file of a run.
type stored struct {
	Schema string `json:"schema"`
	Run    Run    `json:"run"`
}

func (s Series) path(seed uint64, ext string) string {
	return filepath.Join(s.Dir, fmt.Sprintf("%d%s", seed, ext))
}

// Play makes the runs that the directory does not have, and judges all. It ends early, without an error, when ctx ends.
func (s Series) Play(ctx context.Context) (runs []Run, err error) {
	for i := range uint64(s.N) {
		seed := s.Seed + i
		ctx := step.Of(ctx, "run %d of %d", i+1, s.N)
		r, err := s.load(seed)
		switch {
		case errors.Is(err, fs.ErrNotExist) && s.JudgeOnly:
			continue
		case errors.Is(err, fs.ErrNotExist):
			if r = s.make(ctx, seed); ctx.Err() != nil {
				return runs, nil // interrupted
			}
		case err != nil:
			return runs, err
		}
		_, gone := os.Stat(s.path(seed, ".slowpath"))
		judged := errors.Is(gone, fs.ErrNotExist) && len(r.Tiers) > 0 // and its recording was not kept
		if !r.Failed() && !judged {
			step.Say(ctx, "judging it")
			if err := r.Judge(s.path(seed, ".slowpath"), s.Version); err != nil {
				return runs, err
			}
		}
		if r.Error == "" { // what failed is made again
			if err := s.store(r); err != nil {
				return runs, err
			}
		}
		if len(runs) > 0 && runs[0].Only != r.Only {
			return runs, fmt.Errorf("%s and %s were made with different choices of --server",
				s.path(runs[0].Seed, ".json"), s.path(seed, ".json"))
		}
		s.Done(r)
		runs = append(runs, r)
	}
	return runs, nil
}

// make makes a run. What the lab says about it is kept, too.
func (s Series) make(ctx context.Context, seed uint64) Run {
	file := s.path(seed, ".slowpath")
	for _, old := range []string{file, file + "-wal", file + "-shm"} { // of a run that was interrupted
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Run{Seed: seed, Error: err.Error()}
		}
	}
	var log io.Writer = io.Discard
	if f, err := os.Create(s.path(seed, ".log")); err == nil {
		defer f.Close()
		log = f
	}
	return Maker{Record: s.Record, Log: log}.Make(ctx, seed, s.Server, file)
}

func (s Series) load(seed uint64) (Run, error) {
	body, err := os.ReadFile(s.path(seed, ".json"))
	if err != nil {
		return Run{}, err
	}
	var kept stored
	if err := json.Unmarshal(body, &kept); err != nil || kept.Schema != grade.Schema || kept.Run.Seed != seed ||
		!kept.Run.Failed() && len(kept.Run.Truth) == 0 {
		return Run{}, fmt.Errorf("%s is no result of seed %d (%v): remove it to make the run again",
			s.path(seed, ".json"), seed, err)
	}
	return kept.Run, s.drawnAlike(kept.Run)
}

// drawnAlike refuses a result of a series with another choice of servers: its seeds make other
// drawn scenarios. Results that are only judged may have any choice.
func (s Series) drawnAlike(r Run) error {
	if r.Only == s.Server || s.JudgeOnly && s.Server == "" {
		return nil
	}
	choice := "without --server"
	if r.Only != "" {
		choice = fmt.Sprintf("with --server %s", r.Only)
	}
	return fmt.Errorf("%s was made %s: go on with that, or give another --dir", s.path(r.Seed, ".json"), choice)
}

// store writes a result so that it is whole or not there.
func (s Series) store(r Run) error {
	body, err := json.MarshalIndent(stored{grade.Schema, r}, "", "  ")
	if err != nil {
		return err
	}
	path := s.path(r.Seed, ".json")
	if err := os.WriteFile(path+".new", append(body, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
