package ring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"slowpath/internal/format"
)

// mostAside is how many damaged files are kept.
const mostAside = 4

// writing is what the goroutine has that writes the files.
type writing struct {
	packer  *packer
	found   []*file // by newWriting
	aside   []aside // damaged files, the oldest first
	number  int64   // of the newest file
	file    *os.File
	current *file // that is written; nil: none
	retry   time.Time
}

// aside is a damaged file that is kept.
type aside struct {
	name  string
	bytes int64
}

// newWriting takes over what is in the directory.
func newWriting(o Options) (*writing, error) {
	p, err := newPacker()
	if err != nil {
		return nil, err
	}
	w := &writing{packer: p}
	entries, err := o.Folder.Entries(maxFiles)
	if err != nil {
		return nil, err
	}
	w.takeOver(o, entries)
	return w, nil
}

func (w *writing) takeOver(o Options, entries []fs.DirEntry) {
	foreign := 0
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		name := e.Name()
		number, ours := numberOf(name)
		if !e.Type().IsRegular() {
			foreign++
			continue
		} else if strings.HasSuffix(name, suffix+damagedSuffix) {
			w.aside = append(w.aside, aside{name, o.Folder.Size(name)})
			continue
		}
		if !ours {
			foreign++
			continue
		}
		w.number = max(w.number, number)
		f, err := scan(o.Folder, name, number)
		switch {
		case errors.Is(err, errDamaged):
			w.setAside(o, name)
		case err != nil:
			o.Log(fmt.Sprintf("ring: %v: it is left out", err))
		default:
			if f.cut > 0 {
				o.Log(fmt.Sprintf("ring: the last %s of %s are no whole block: its writer was killed, or the file is "+
					"damaged; the rest of it is kept", format.Bytes(f.cut), name))
				if out, err := o.Folder.OpenFile(name, os.O_WRONLY); err == nil {
					_ = out.Truncate(f.bytes) // else it only takes room
					out.Close()
				}
			}
			w.found = append(w.found, f)
		}
	}
	if foreign > 0 {
		o.Log(fmt.Sprintf("ring: %s in %s are not of the ring and are left alone", format.Count(foreign, "file"),
			o.Folder.Path()))
	}
}

// setAside renames a file of which nothing can be read. A few are kept, to be looked at.
func (w *writing) setAside(o Options, name string) {
	to := name + damagedSuffix
	if err := o.Folder.Rename(name, to); err != nil {
		o.Log(fmt.Sprintf("ring: %s is damaged and is left out: %v", name, err))
		return
	}
	o.Log(fmt.Sprintf("ring: %s is damaged: it is now %s", name, to))
	w.aside = append(w.aside, aside{to, o.Folder.Size(to)})
	if len(w.aside) > mostAside {
		_ = o.Folder.Remove(w.aside[0].name)
		w.aside = w.aside[1:]
	}
}

func (r *Ring) run() {
	defer close(r.stopped)
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = r.write(false)
		case <-r.kick:
			_ = r.write(false)
		case reply := <-r.flush:
			reply <- r.write(true)
		case <-r.stop:
			r.out.end()
			return
		}
	}
}

// write writes all blocks. After a failure it waits, unless it must try.
func (r *Ring) write(must bool) error {
	r.mu.Lock()
	if r.fileNs+int64(r.o.Each) <= r.o.Clock.Now() && r.block.rows > 0 {
		r.due = true
	}
	r.seal()
	r.mu.Unlock()
	if !must && time.Now().Before(r.out.retry) {
		return nil
	}
	for {
		b := r.first()
		if b == nil {
			break
		}
		if err := r.append(b); err != nil {
			r.failed(err)
			return err
		}
		r.wrote(b)
	}
	r.works()
	return nil
}

// first is the next block to be written.
func (r *Ring) first() *block {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == 0 {
		return nil
	}
	return r.pending[0]
}

// wrote takes a block from those that wait.
func (r *Ring) wrote(b *block) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) > 0 && r.pending[0] == b {
		r.pending[0] = nil
		r.pending = r.pending[1:]
		r.pendingBytes -= len(b.raw)
	} else if !b.carried { // it was counted as lost while it was written
		r.lost -= int64(b.rows)
		r.unsaid = max(0, r.unsaid-int64(b.rows))
	}
}

// append writes a block to the file that it belongs to.
func (r *Ring) append(b *block) error {
	w := r.out
	if b.opens || w.current == nil {
		if err := r.nextFile(b); err != nil {
			return err
		}
	}
	packed := w.packer.pack(b)
	if err := r.makeRoom(int64(len(packed))); err != nil {
		return err
	}
	if _, err := w.file.WriteAt(packed, w.current.bytes); err != nil {
		_ = w.file.Truncate(w.current.bytes)
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := w.current
	if f.fromNs == 0 {
		f.fromNs = b.fromNs
		r.files = append(r.files, f)
	}
	f.toNs = max(f.toNs, b.toNs)
	f.rows += int64(b.rows)
	f.bytes += int64(len(packed))
	if f.bytes > r.o.MaxBytes/filesOfRing {
		r.due = true
	}
	return nil
}

// nextFile begins a file, unless the last try to write its first block failed.
func (r *Ring) nextFile(*block) error {
	w := r.out
	if w.current != nil && w.current.fromNs == 0 {
		return nil
	}
	w.end()
	if err := r.makeRoom(int64(len(magic))); err != nil {
		return err
	}
	out, f, err := create(r.o.Folder, w.number+1)
	if errors.Is(err, os.ErrNotExist) { // somebody removed the directory
		if err = r.o.Folder.Again(); err == nil {
			out, f, err = create(r.o.Folder, w.number+1)
		}
	}
	if errors.Is(err, os.ErrExist) {
		w.number++ // somebody else's: the next try takes another number
	}
	if err != nil {
		return err
	}
	w.number++
	w.file, w.current = out, f
	r.retire()
	return nil
}

// end closes the file that is written. What it has is then safe from a crash of the machine, too.
func (w *writing) end() {
	if w.file == nil {
		return
	}
	_ = w.file.Sync()
	w.file.Close()
	w.file, w.current = nil, nil
}

// retire removes files that are older than all that is to be kept. It goes by how much time the newer ones have, and
// not by the clock, which may jump while no agent runs; what an earlier agent saw before a crash is there until there
// is as much new.
func (r *Ring) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var newer int64
	for i := len(r.files) - 1; i >= 0; i-- {
		if newer >= int64(r.o.Keep) {
			for _, f := range r.files[:i+1] {
				_ = r.o.Folder.Remove(f.name)
			}
			r.files = append([]*file(nil), r.files[i+1:]...)
			return
		}
		newer += r.files[i].toNs - r.files[i].fromNs
	}
}

// makeRoom removes the oldest files until there is room for so many bytes.
func (r *Ring) makeRoom(bytes int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		sum := bytes
		for _, f := range r.files {
			sum += f.bytes
		}
		for _, a := range r.out.aside {
			sum += a.bytes
		}
		switch {
		case sum <= r.o.MaxBytes:
			return nil
		case len(r.out.aside) > 0:
			_ = r.o.Folder.Remove(r.out.aside[0].name)
			r.out.aside = r.out.aside[1:]
		case len(r.files) > 0 && r.files[0] != r.out.current:
			_ = r.o.Folder.Remove(r.files[0].name)
			r.files = r.files[1:]
		default:
			return errNoRoom
		}
	}
}

// failed says once why nothing can be written.
func (r *Ring) failed(err error) {
	r.out.retry = time.Now().Add(retryEvery)
	why := fmt.Sprintf("the ring in %s cannot be written (%v)", r.o.Folder.Path(), err)
	fix := "check the disk"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		fix = "make room on that disk, or name a data directory on another one"
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		fix = "let the user of slowpath write there"
	}
	r.mu.Lock()
	said := r.trouble != ""
	r.trouble = why + ": what is seen is kept in memory, for a short time; " + fix
	text := r.trouble
	r.mu.Unlock()
	if !said {
		r.o.Log(text)
	}
}

// works says that writing goes on after a failure.
func (r *Ring) works() {
	r.out.retry = time.Time{}
	r.mu.Lock()
	was, lost := r.trouble != "", r.lost
	r.trouble = ""
	r.due = r.due || was
	r.mu.Unlock()
	if was {
		r.o.Log(fmt.Sprintf("the ring in %s is written again; %s were lost", r.o.Folder.Path(),
			format.Count(int(lost), "row")))
	}
}
