package named

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/join"
)

// Recording reads a recording that the command line names, of which nothing is missing.
func (c *CommandLine) Recording(path string) (*recording.Recording, error) {
	rec, err := c.Damaged(path)
	if err == nil && rec.Damage != "" {
		return nil, cli.Usagef("%s: %s", path, rec.Damage)
	}
	return rec, err
}

// Damaged reads a recording that the command line names. Of a damaged one it is what can be read.
func (c *CommandLine) Damaged(path string) (*recording.Recording, error) {
	return c.opened(path, false)
}

// opened reads a recording, and shows how far it is.
func (c *CommandLine) opened(path string, toJudge bool) (*recording.Recording, error) {
	name := filepath.Base(path)
	if dir := c.Scratch.Path(); dir != "" && strings.HasPrefix(path, dir) {
		name = "the recording"
	}
	defer c.Working("reading %s", name)()
	rec, err := recording.Reading{
		ToJudge:  toJudge,
		Progress: func(share float64) { c.Progress("reading %s, %.0f %%", name, 100*share) },
	}.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, cli.Usagef("no such recording: %s; check the name, or make it: slowpath record HOST:PORT -o %s",
			path, path)
	case errors.Is(err, recording.ErrNotRecording):
		return nil, cli.Usagef("%w; slowpath record HOST:PORT -o FILE makes one, and "+
			"tcpdump -w FILE tcp port 6379 a packet capture; slowpath doctor --text reads what redis-cli printed", err)
	case err != nil:
		return nil, cli.Usage(err)
	}
	return rec, nil
}

// Recordings reads a recording, or joins several, and says what was joined and what was not, which the blind spots of a
// verdict say too. With alone, calls without a counterpart stay, and all calls of a large recording.
func (c *CommandLine) Recordings(paths []string, alone bool) (*recording.Recording, error) {
	if len(paths) == 1 {
		return c.opened(paths[0], !alone)
	}
	var all []*recording.Recording
	for i, path := range paths {
		if slices.Contains(paths[:i], path) {
			return nil, cli.Usagef("%s is named twice: leave it out once", path)
		}
		one, err := c.Damaged(path)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	defer c.Working("joining %d recordings", len(all))()
	rec, results, err := join.All(all, alone)
	if err != nil {
		return nil, cli.Usagef("%s and %s cannot be joined: %w", paths[0], paths[1], err)
	}
	names := shortNames(paths)
	start, _ := rec.Window()
	for _, r := range results {
		name := names[r.Index]
		if r.Why != nil {
			c.Say(fmt.Sprintf("%s and %s are not joined: %v", names[r.Server], name, r.Why))
		}
		if r.Joined > 0 {
			are := "are joined with their"
			if r.Joined == 1 {
				are = "is joined with its"
			}
			in := ""
			if len(rec.Hosts) > 0 {
				in = " in " + names[r.Server]
			}
			calls := format.Count(r.Joined, "call")
			c.Say(fmt.Sprintf("%s of %s %s server's end%s; %s", calls, name, are, in, r.Clocks()))
		}
		for _, b := range r.BlindSpots(name) {
			c.Say(strings.TrimSuffix(fmt.Sprintf("%s: %s; %s", b.What, b.Why, b.Enable), "; "))
			rec.Event(recording.Event{
				TimeNs: start, Source: recording.SourceTap, Kind: recording.KindBlindSpot,
				Detail: recording.Detail(b),
			})
		}
	}
	return rec, nil
}

// shortNames are the names of files, with their directories where two would have the same.
func shortNames(paths []string) (names []string) {
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(paths) {
		return paths
	}
	return names
}
