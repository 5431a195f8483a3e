package capture

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// File is a file of packets. It is read from its beginning, several times.
type File struct {
	Name string
	io.ReadSeeker
}

// open opens the file at its beginning.
func (f File) open() (*packets, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return openPackets(f)
}

// slackNs: what was written to the next file of a ring may be so much older than the last packet before, since packets
// of several CPUs are not in order.
const slackNs = int64(1e9)

// chain is the packets of files, one after the other.
type chain struct {
	files   []File
	at      int // of the open file
	open    *packets
	lastNs  int64
	short   []string // why files ended early
	dropped int64    // packets that those who made the files say are missing
}

// newChain needs files in order of time.
func newChain(files []File) *chain { return &chain{files: files, at: -1} }

func (c *chain) close() {
	if c.open != nil {
		c.dropped = saturated(c.dropped + c.open.dropped())
		c.open.close()
		c.open = nil
	}
}

// next reads a packet; io.EOF: there is none. A file that is cut or damaged ends there, and the next one follows.
func (c *chain) next(p *packet) error {
	for {
		if c.open == nil {
			if c.at+1 == len(c.files) {
				return io.EOF
			}
			c.at++
			var err error
			if c.open, err = c.files[c.at].open(); err != nil {
				return c.named(err)
			}
			if err := c.first(p); err != nil {
				return err
			}
			if c.open != nil {
				return nil
			}
			continue
		}
		if err := c.open.next(p); err == nil {
			c.lastNs = max(c.lastNs, p.ns)
			return nil
		} else if err != io.EOF {
			c.short = append(c.short, c.named(err).Error())
		}
		c.close()
	}
}

// first reads the first packet of a file.
func (c *chain) first(p *packet) error {
	switch err := c.open.next(p); {
	case err == io.EOF:
		c.close()
		return nil
	case err != nil:
		c.short = append(c.short, c.named(err).Error())
		c.close()
		return nil
	case c.at > 0 && p.ns > 0 && p.ns < c.lastNs-slackNs:
		return fmt.Errorf("%s, %s: %w", c.files[c.at-1].Name, c.files[c.at].Name, ErrOverlap)
	}
	c.lastNs = max(c.lastNs, p.ns)
	return nil
}

// named names the file of an error, where there are several.
func (c *chain) named(err error) error {
	if len(c.files) == 1 {
		return err
	}
	return fmt.Errorf("%s: %w", c.files[c.at].Name, err)
}

// truncated says why files ended early.
func (c *chain) truncated() string {
	const most = 3
	text := strings.Join(c.short[:min(len(c.short), most)], "; ")
	if n := len(c.short) - most; n > 0 {
		text += fmt.Sprintf("; and %d more files", n)
	}
	return text
}

// saturated is a sum of counts that anybody may have written.
func saturated(n int64) int64 {
	if n < 0 {
		return math.MaxInt64
	}
	return n
}

// Captures finds out which files are of one capture: those whose names differ in a number alone and whose packets are
// not of the same time, as the files of a ring. Each capture is in order of time.
func Captures(ctx context.Context, files []File) (captures [][]File, err error) {
	ofName := map[string][]dated{}
	var names []string
	for _, f := range files {
		ns, err := firstNs(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		name := nameOf(f.Name)
		if ofName[name] == nil {
			names = append(names, name)
		}
		ofName[name] = append(ofName[name], dated{f, ns})
	}
	for _, name := range names {
		all := ofName[name]
		slices.SortStableFunc(all, func(a, b dated) int { return cmp.Compare(a.ns, b.ns) })
		var own [][]dated
		for _, f := range all {
			own = place(ctx, own, f)
		}
		for _, list := range own {
			var capture []File
			for _, f := range list {
				capture = append(capture, f.File)
			}
			captures = append(captures, capture)
		}
	}
	return captures, ctx.Err()
}

// dated is a file with the time of its first packet.
type dated struct {
	File
	ns int64
}

// place adds a file to the first capture that has ended before its first packet.
func place(ctx context.Context, captures [][]dated, f dated) [][]dated {
	for i, list := range captures {
		if !reaches(ctx, list[len(list)-1].File, f.ns) {
			captures[i] = append(list, f)
			return captures
		}
	}
	return append(captures, []dated{f})
}

// reaches reports whether a file has packets after a time, of those at its beginning. What is behind these is found out
// when the file is read.
func reaches(ctx context.Context, f File, ns int64) bool {
	src, err := f.open()
	if err != nil {
		return false
	}
	defer src.close()
	var p packet
	for range surveyPackets {
		if src.next(&p) != nil || ctx.Err() != nil {
			return false
		}
		if p.ns-slackNs > ns {
			return true
		}
	}
	return false
}

// firstNs is the time of the first packet of a file; that of one without any is after all others.
func firstNs(f File) (int64, error) {
	src, err := f.open()
	if err != nil {
		return 0, err
	}
	defer src.close()
	var p packet
	if err := src.next(&p); err != nil {
		return math.MaxInt64, nil //nolint:nilerr // it is told when the file is read
	}
	return p.ns, nil
}

var numbers = regexp.MustCompile("[0-9]+")

// nameOf is a name without its numbers.
func nameOf(path string) string {
	dir, base := filepath.Split(path)
	return dir + numbers.ReplaceAllString(base, "0")
}
