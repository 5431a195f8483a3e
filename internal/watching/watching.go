// Package watching runs watches into recordings and shows what came of them: a verdict, a live view, what changed from
// one watch to another.
package watching

import (
	"context"
	"path/filepath"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/outfile"
	"slowpath/internal/recording"
	"slowpath/internal/source"
)

// File is where a watch is recorded.
type File struct {
	Path    string   // empty: in a directory that is removed in the end
	MaxDisk int64    // bytes
	beside  []string // files that are written later, to the end of the watch
}

// place chooses where a recording is that nobody asked to keep.
func (f *File) place(c *named.CommandLine) error {
	if f.Path != "" {
		return nil
	}
	dir, bytes, err := c.ScratchPlace()
	f.Path, f.MaxDisk = filepath.Join(dir, "watch.slowpath"), min(f.MaxDisk, bytes)
	return err
}

// runner runs a watch into a recording, and calls started when it has begun.
type runner func(ctx context.Context, o source.Options, rec *recording.Writer, started func()) error

// Record runs a watch into a recording. Where it cannot begin, no file is left. When the recording cannot be written
// any more, it ends with a recording.WriteError. Ending is what Ctrl-C leads to, once the watch has begun.
func Record(ctx context.Context, c *named.CommandLine, o source.Options, f File, ending string) error {
	return f.record(ctx, c, o, ending, func(ctx context.Context, o source.Options, rec *recording.Writer,
		started func(),
	) error {
		return runCounted(ctx, c.Program, o, rec, started)
	})
}

func (f *File) record(ctx context.Context, c *named.CommandLine, o source.Options, ending string, run runner) error {
	c.OnInterrupt("nothing was watched yet")
	written := f.beside
	if c.Scratch.Path() == "" {
		written = append(written, f.Path)
	}
	o.Loaded = c.Dropper(written, o.Targets, o.Profiles)
	rec, err := recording.Create(f.Path, f.MaxDisk)
	if err != nil {
		return cli.Usage(err)
	}
	c.Scratch.Begun(f.Path)
	defer c.Scratch.Whole(f.Path)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-rec.Failed(): // nothing more is kept: the watch ends
			cancel()
		case <-ctx.Done():
		}
	}()
	started := func() {
		c.Scratch.Whole(f.Path)
		c.OnInterrupt(ending)
	}
	watchErr := run(ctx, o, rec, started)
	closeErr := rec.Close()
	if watchErr != nil {
		outfile.Remove(f.Path) // nothing was watched
		return watchErr
	}
	return closeErr
}
