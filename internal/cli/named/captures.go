package named

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/outfile"
	"slowpath/internal/recording"
	"slowpath/internal/source/capture"
)

// captureName matches names that are those of captures, and no host's.
var captureName = regexp.MustCompile(`\.(pcap|pcapng|cap)(\.gz|\.zst)?$`)

// WithCaptures makes recordings of packet captures, and gives the files to read instead: one of the files of a ring,
// two of captures of both ends. What it makes is removed when the command ends.
func (c *CommandLine) WithCaptures(ctx context.Context, paths []string) ([]string, error) {
	var captures []string
	other := ""
	for _, path := range paths {
		is, empty, err := isCapture(path)
		switch {
		case err != nil:
			return nil, cli.Usage(err)
		case is:
			captures = append(captures, path)
		case empty && len(paths) > 1 && captureName.MatchString(path): // one that was just begun
			c.Say(path + " is empty")
		default:
			other = path
		}
	}
	switch {
	case len(captures) == 0:
		return paths, nil
	case other != "":
		return nil, cli.Usagef("%s is a packet capture, and %s is none: a recording cannot be joined with a "+
			"capture; name either alone", captures[0], other)
	}
	return c.readCaptures(ctx, captures)
}

// isCapture reports whether a file begins as captures do, or is empty. One that is not there is none.
func isCapture(path string) (is, empty bool, err error) {
	if !recording.IsFile(path) {
		return false, false, nil
	}
	f, err := cli.OpenNamed(path)
	if err != nil {
		return false, false, err
	}
	defer f.Close()
	head := make([]byte, 4)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, false, err
	}
	return capture.Is(head[:n]), n == 0, nil
}

// readCaptures makes a recording of each capture.
func (c *CommandLine) readCaptures(ctx context.Context, paths []string) (made []string, err error) {
	defer c.Working("reading the capture")()
	files, done, err := c.openCaptures(paths)
	if err != nil {
		return nil, cli.Usage(err)
	}
	defer done()
	all, err := capture.Captures(ctx, files)
	if err != nil {
		return nil, explainReading(err)
	}
	if len(all) > 2 {
		return nil, cli.Usagef("these are %d captures of the same time: %s, %s, %s; give the files of one, or of "+
			"the two ends of the same connections", len(all), all[0][0].Name, all[1][0].Name, all[2][0].Name)
	}
	dir, bytes, err := c.ScratchPlace()
	if err != nil {
		return nil, err
	}
	bytes = min(bytes/int64(len(all)), recording.DefaultMaxDisk)
	if len(all) == 2 {
		return c.readPair(ctx, all, dir, bytes)
	}
	path := filepath.Join(dir, "capture.slowpath")
	rec, err := recording.Create(path, bytes)
	if err != nil {
		return nil, err
	}
	summary, err := capture.Read(ctx, all[0], capture.Options{Version: c.Version}, rec)
	if err = errors.Join(err, rec.Close()); err != nil {
		return nil, explainReading(ofCaptures(err, paths))
	}
	c.readToTheEnd(all[0], summary)
	return []string{path}, nil
}

// readPair makes recordings of two captures of the same connections. They have the names of the captures, which the
// verdict gives.
func (c *CommandLine) readPair(ctx context.Context, all [][]capture.File, dir string, bytes int64,
) (made []string, err error) {
	pair, err := capture.Ends(ctx, all[0], all[1], capture.Options{Version: c.Version})
	switch {
	case errors.Is(err, capture.ErrNothingInCommon), errors.Is(err, capture.ErrSamePlace):
		return nil, cli.Usagef("%s and %s cannot be joined: %w", all[0][0].Name, all[1][0].Name, err)
	case err != nil:
		return nil, explainReading(err)
	}
	var recs []*recording.Writer
	for i, files := range [][]capture.File{pair.Client, pair.Server} {
		own := filepath.Join(dir, []string{"client", "server"}[i])
		made = append(made, filepath.Join(own, filepath.Base(files[0].Name)))
		if err := outfile.Directory(own); err != nil {
			return nil, err
		}
		rec, err := recording.Create(made[i], bytes)
		if err != nil {
			return nil, err
		}
		defer rec.Close()
		recs = append(recs, rec)
	}
	summaries, err := pair.Read(ctx, recs[0], recs[1])
	if err = errors.Join(err, recs[0].Close(), recs[1].Close()); err != nil {
		return nil, explainReading(err)
	}
	c.readToTheEnd(pair.Client, summaries[0])
	c.readToTheEnd(pair.Server, summaries[1])
	return made, nil
}

// openCaptures opens captures that the command line names.
func (c *CommandLine) openCaptures(paths []string) (files []capture.File, done func(), err error) {
	done = func() {
		for _, f := range files {
			f.ReadSeeker.(*shownFile).Close()
		}
	}
	for i, path := range paths {
		if slices.Contains(paths[:i], path) {
			err = fmt.Errorf("%s is named twice: leave it out once", path)
		}
		var f *os.File
		if err == nil {
			f, err = cli.OpenNamed(path)
		}
		if err != nil {
			done()
			return nil, nil, err
		}
		files = append(files, capture.File{Name: path, ReadSeeker: &shownFile{File: f, of: c}})
	}
	return files, done, nil
}

// shownFile is a file that shows how much of it was read.
type shownFile struct {
	*os.File
	of    *CommandLine
	at    int64
	again string // where it was read before
}

func (f *shownFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.at += int64(n)
	if st, statErr := f.Stat(); statErr == nil && st.Size() > 0 {
		f.of.Progress("reading %s%s, %d %%", filepath.Base(f.Name()), f.again, 100*f.at/st.Size())
		if f.at == st.Size() {
			f.again = " again"
		}
	}
	return n, err
}

func (f *shownFile) Seek(offset int64, whence int) (at int64, err error) {
	f.at, err = f.File.Seek(offset, whence)
	return f.at, err
}

// ofCaptures puts the names of the files in front of an error.
func ofCaptures(err error, paths []string) error {
	return fmt.Errorf("%s: %w", namesOf(paths), err)
}

// explainReading gives an error of captures its exit code.
func explainReading(err error) error {
	switch {
	case errors.Is(err, capture.ErrNotCapture):
		return cli.Usagef("%w; tcpdump -w FILE tcp port 6379 makes one", err)
	case errors.Is(err, capture.ErrNoCalls), errors.Is(err, capture.ErrOverlap):
		return cli.Usage(err)
	}
	return fmt.Errorf("reading %w", err)
}

// readToTheEnd says when a file has ended early.
func (c *CommandLine) readToTheEnd(files []capture.File, s capture.Summary) {
	switch {
	case s.Truncated == "":
	case len(files) == 1:
		c.Say(fmt.Sprintf("%s: %s: the verdict is of the %s before", files[0].Name, s.Truncated,
			format.Count(s.Packets, "packet")))
	default:
		c.Say(s.Truncated + ": the rest of that is missing")
	}
}
