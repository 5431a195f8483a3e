package ring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"slowpath/internal/agent/folder"
	"slowpath/internal/recording"
)

const (
	// late is by how much rows come later than what they tell of: polls of a server, and its log of slow commands.
	late = int64(30 * time.Second)
	// gapNs is from when on it is said that nothing was watched between two watches.
	gapNs = int64(time.Second)
)

// Save writes what was seen in [from, to) to a new recording in a directory, of a name that must not exist.
func (r *Ring) Save(ctx context.Context, from, to time.Time, in *folder.Folder, name string) error {
	return r.SaveCut(ctx, Cut{From: from, To: to}, in, name)
}

// SaveCut writes a cut to a new recording in a directory, of a name that must not exist. What sources wrote earlier
// and still held at its begin is in it, so that it is judged as a watch of that time. Where the tap runs, the cut
// begins and ends with one of its counts, which come every second. It includes what came in up to now. ErrNothing:
// there is nothing of this time.
func (r *Ring) SaveCut(ctx context.Context, c Cut, in *folder.Folder, name string) error {
	from, to := c.From, c.To
	if !from.Before(to) {
		return fmt.Errorf("saving %v to %v: the end is not after the begin", from, to)
	}
	if _, err := in.Lstat(name); err == nil {
		return fmt.Errorf("saving to %s: %w", name, fs.ErrExist)
	}
	_ = r.Flush() // where that fails the rest is in memory
	parts, closeAll := r.parts(from.Add(-c.Before).UnixNano(), to.UnixNano())
	defer closeAll()
	if len(parts) == 0 {
		return fmt.Errorf("%w: %s to %s", ErrNothing, from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	}
	unfinished := name + ".part"
	_ = in.Remove(unfinished) // of a save that was killed
	file, err := in.Create(unfinished)
	if err != nil {
		return fmt.Errorf("saving to %s: %w", name, err)
	}
	defer in.Remove(unfinished)
	out, err := recording.WriteAtOnce(file, in.Path(unfinished), 0)
	if err != nil {
		return err
	}
	o := outline{fromNs: from.UnixNano(), toNs: to.UnixNano()}
	err = readAll(ctx, parts, func(_ string, b *block) bool {
		if b != nil {
			o.carrying = b.carried
			_ = decode(b.raw, b.fromNs, &o) // damage is noticed below
		}
		return true
	})
	w := newWindow(out, o, c)
	if err == nil {
		err = readAll(ctx, parts, w.readBlock)
	}
	if err == nil {
		err = w.finish()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("saving to %s: %w", name, err)
	}
	return in.Publish(unfinished, name)
}

// part is a file of the ring, or the blocks that are in memory.
type part struct {
	reader *reader
	name   string
	blocks []*block
	at     int
}

func (p *part) next() (*block, error) {
	if p.reader != nil {
		return p.reader.next()
	}
	if p.at == len(p.blocks) {
		return nil, io.EOF
	}
	p.at++
	return p.blocks[p.at-1], nil
}

// parts are what has rows of a window, open: they may be removed meanwhile.
func (r *Ring) parts(fromNs, toNs int64) (out []*part, closeAll func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	closeAll = func() {
		for _, p := range out {
			if p.reader != nil {
				p.reader.file.Close()
				p.reader.zstd.Close()
			}
		}
	}
	for _, f := range choose(r.files, fromNs, toNs) {
		opened, err := r.o.Folder.Open(f.name)
		if err != nil {
			continue // somebody removed it
		}
		z, err := newUnpacker()
		if err != nil {
			opened.Close()
			continue
		}
		out = append(out, &part{reader: &reader{file: opened, size: f.bytes, zstd: z}, name: f.name})
	}
	if len(r.pending) > 0 {
		out = append(out, &part{blocks: append([]*block(nil), r.pending...), name: "memory"})
	}
	return out, closeAll
}

// choose takes the files, of which the oldest is first, that have rows of a window. The last one that began before it
// has what held then. Where the clock was set back between two agents, the newer one's time counts.
func choose(files []*file, fromNs, toNs int64) (out []*file) {
	until := toNs + late
	for i := len(files) - 1; i >= 0; i-- {
		f := files[i]
		if f.fromNs >= until {
			continue // it began later, or its time is that of a newer one
		}
		until = min(until, f.fromNs)
		out = append([]*file{f}, out...)
		if f.fromNs < fromNs { // rows are of a time before they were written: those before it are of earlier times
			break
		}
	}
	if len(out) > 0 && out[len(out)-1].toNs < fromNs { // all of it is older
		return nil
	}
	return out
}

// rewind has the blocks be read again.
func (p *part) rewind() {
	p.at = 0
	if p.reader != nil {
		p.reader.at = 0
	}
}

// readAll reads all blocks. f is handed nil for one that is damaged, and says whether to go on.
func readAll(ctx context.Context, parts []*part, f func(name string, b *block) bool) error {
	for _, p := range parts {
		p.rewind()
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			b, err := p.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if !f(p.name, b) {
				return nil
			}
		}
	}
	return nil
}

// readBlock reads a block, unless the recording cannot be written any more.
func (w *window) readBlock(name string, b *block) bool {
	if b == nil || w.read(b) != nil {
		w.broken[name] = true
	}
	select {
	case <-w.out.Failed(): // Close says why
		return false
	default:
		return true
	}
}
