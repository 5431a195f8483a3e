//go:build linux

package benching

import (
	"errors"
	"fmt"
	"io"
	"os"

	"slowpath/internal/cli"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/engine"
)

// benchFiles are the files that a load writes in addition to its result, second by second.
type benchFiles struct {
	csv, hlog *os.File
	rows      *bench.CSV
	log       *bench.HistogramLog
}

// openFiles makes the files before the load, so that a name that cannot be written ends the command and not the load.
// Files that exist are not overwritten.
func openFiles(f *Options) (_ *benchFiles, err error) {
	b := &benchFiles{}
	if b.csv, err = cli.NewFile("csv", f.CSV); err != nil {
		return nil, err
	}
	if b.hlog, err = cli.NewFile("hlog", f.HLog); err != nil {
		b.discard()
		return nil, err
	}
	if b.csv != nil {
		b.rows = bench.NewCSV(b.csv)
	}
	return b, nil
}

// begin notes when the load begins, in ns since the epoch.
func (b *benchFiles) begin(w *engine.Options, startNs int64) {
	if b.hlog == nil {
		return
	}
	var ops []string
	for _, o := range w.Ops() {
		ops = append(ops, o.Name)
	}
	b.log = bench.NewHistogramLog(b.hlog, ops, startNs)
}

func (b *benchFiles) second(s bench.Second, t *engine.Tally) {
	if b.rows != nil {
		b.rows.Second(s)
	}
	if b.log != nil {
		b.log.Second(s, t)
	}
}

// limit says at the end of the files what limited the load.
func (b *benchFiles) limit(r *bench.Result) {
	if b.rows != nil {
		b.rows.LimitedBy(r.LimitedBy, r.Bottleneck)
	}
	if b.log != nil {
		b.log.LimitedBy(r.LimitedBy, r.Bottleneck)
	}
}

// close ends the files of a load that ran, and gives the first error of them.
func (b *benchFiles) close() error {
	var errs []error
	if b.rows != nil {
		errs = append(errs, b.rows.Err())
	}
	if b.log != nil {
		errs = append(errs, b.log.Err())
	}
	for _, c := range []*os.File{b.csv, b.hlog} {
		if c != nil {
			errs = append(errs, io.Closer(c).Close())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("writing the results of each second: %w", err)
	}
	return nil
}

// discard removes the files of a load that never began.
func (b *benchFiles) discard() {
	for _, c := range []*os.File{b.csv, b.hlog} {
		if c != nil {
			c.Close()
			cli.RemoveFile(c.Name())
		}
	}
}
