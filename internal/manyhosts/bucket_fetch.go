package manyhosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"slowpath/internal/bucket"
	"slowpath/internal/format"
	"slowpath/internal/outfile"
)

// fetch fetches what is missing of incidents. What the bucket does not have any more, or not as it said, is told of.
func (f *fetching) fetch(ctx context.Context, all []*stored) error {
	missing := slices.DeleteFunc(slices.Clone(all), func(in *stored) bool {
		return !slices.ContainsFunc(objectsOf, func(name string) bool { return !f.has(in, name) })
	})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan *stored)
	var fetchersEnd sync.WaitGroup
	for range min(fetchers, len(missing)) {
		fetchersEnd.Go(func() {
			for in := range work {
				if err := f.incident(ctx, in, len(missing)); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, in := range missing {
		select {
		case work <- in:
		case <-ctx.Done():
		}
	}
	close(work)
	fetchersEnd.Wait()
	if len(f.failed) > 0 {
		slices.Sort(f.failed)
		f.o.Say(fmt.Sprintf("%s left out, as the bucket does not give what it lists: %s",
			format.Count(len(f.failed), "incident"), f.failed[0]))
	}
	return context.Cause(ctx)
}

// incident fetches one.
func (f *fetching) incident(ctx context.Context, in *stored, of int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, name := range objectsOf {
		if f.has(in, name) {
			continue
		}
		err := f.object(ctx, in, name)
		var local *fs.PathError
		var renaming *os.LinkError
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, bucket.ErrTooLarge) || errors.Is(err, errCut):
			f.mu.Lock()
			f.failed = append(f.failed, err.Error())
			f.mu.Unlock()
			return nil
		case errors.As(err, &local) || errors.As(err, &renaming) || ctx.Err() != nil:
			return err
		case err != nil:
			return fmt.Errorf("%s %w: %w; what was fetched is kept", f.o.Bucket.String(), ErrBucket, err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fetched++
	f.o.Show("fetched %d of %d recordings, %s", f.fetched, of, format.Bytes(f.bytes))
	return nil
}

// errCut says that an object is shorter than its list says.
var errCut = errors.New("it is shorter than it was")

// object fetches one, under another name until it is whole.
func (f *fetching) object(ctx context.Context, in *stored, name string) error {
	to, bytes := f.path(in, name), in.bytes[name]
	if err := outfile.Directory(filepath.Dir(to)); err != nil {
		return &fs.PathError{Op: "making", Path: filepath.Dir(to), Err: err}
	}
	part := fmt.Sprintf("%s.%d.part", to, os.Getpid()) // another slowpath may fetch it, too
	file, err := outfile.Overwrite(part)
	if err != nil {
		return &fs.PathError{Op: "making", Path: part, Err: err}
	}
	err = f.o.Bucket.Get(ctx, in.dir+"/"+name, file, bytes)
	info, statErr := file.Stat()
	if err = cmp.Or(err, errors.Join(statErr, file.Close())); err == nil && info.Size() != bytes {
		err = fmt.Errorf("%s: %w", in.dir+"/"+name, errCut)
	}
	if err == nil {
		err = os.Rename(part, to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	f.mu.Lock()
	f.bytes += bytes
	f.mu.Unlock()
	return nil
}
