//go:build linux

package tap

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/gob"
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/cilium/ebpf/ringbuf"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

var record = flag.Bool("record", false, "write what the watches of the tests read to testdata")

// taper is a real watch whose reading is put on a tape.
type taper struct {
	*Tap
	rec   *recording.Recording
	tape  tape
	ended chan error
	end   context.CancelFunc
}

// openTaped opens a watch. Before start its Tap and rec may be changed.
func openTaped(t testing.TB, o Options) *taper {
	t.Helper()
	p := &taper{ended: make(chan error, 1), rec: recording.New(), tape: tape{
		Layout: layout(), Ops: map[uint32]kernelOpKey{}, Files: map[string]string{}, Quotas: map[int]tapedQuota{},
	}}
	if quota := o.Quota; quota != nil {
		o.Quota = func(tid int) (string, float64) {
			cgroup, cores := quota(tid)
			p.tape.Quotas[tid] = tapedQuota{cgroup, cores}
			return cgroup, cores
		}
	}
	o.Clock, o.Files, o.Sink = clock.New(), tapedFiles{host.Root{}, p}, p.rec
	tap, err := Open(o)
	attached(t, err)
	p.Tap = tap
	p.tape.Options, p.tape.Offset = tap.Options, tap.offset
	p.tape.Options.Clock, p.tape.Options.Files, p.tape.Options.Sink, p.tape.Options.Quota = nil, nil, nil, nil
	tap.reports, tap.counts = &tapedReports{reports: tap.reports, to: p}, newTapedCounts(tap, p)
	if tap.snapshots != nil {
		tap.snapshots = tapingExchanges{tap.snapshots, p}
	}
	return p
}

// start has it run, until stop.
func (p *taper) start(t testing.TB) {
	ctx, cancel := context.WithCancel(t.Context())
	p.end = cancel
	go func() { p.ended <- p.Run(ctx) }()
}

func (p *taper) stop(t testing.TB) {
	t.Helper()
	p.end()
	if err := errors.Join(<-p.ended, p.Close()); err != nil {
		t.Error(err)
	}
	p.rec.Index()
}

// readAll takes what has come by now, and closes the watch.
func (p *taper) readAll(t testing.TB) {
	t.Helper()
	p.start(t)
	p.stop(t)
}

// watchTaped opens a watch and starts it.
func watchTaped(t testing.TB, o Options) *taper {
	t.Helper()
	p := openTaped(t, o)
	p.start(t)
	return p
}

// checked checks what the watch recorded. With -record the tape is written, if what it gives is right, too.
func checked[M any](t *testing.T, p *taper, name string, made M, check func(*testing.T, *recording.Recording, M)) {
	t.Helper()
	check(t, p.rec, made)
	if !*record || t.Failed() {
		return
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(made); err != nil {
		t.Fatal(err)
	}
	p.tape.Made = b.Bytes()
	var file bytes.Buffer
	z, err := gzip.NewWriterLevel(&file, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(gob.NewEncoder(z).Encode(&p.tape), z.Close(), os.MkdirAll("testdata", 0o755),
		os.WriteFile(tapePath(name), file.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d bytes, %d passes", tapePath(name), file.Len(), len(p.tape.Passes))
	rec, made := playTape[M](t, name, nil)
	check(t, rec, made)
}

// now is the pass under way.
func (p *taper) now() *tapedPass { return &p.tape.Passes[len(p.tape.Passes)-1] }

// pass begins one, unless nothing was read in the last one: then its time was of no matter.
func (p *taper) beginPass() {
	at := p.Clock.Now()
	if n := len(p.tape.Passes); n > 1 && p.now().empty() {
		p.now().At = at
		return
	}
	p.tape.Passes = append(p.tape.Passes, tapedPass{At: at})
}

func (p *tapedPass) empty() bool {
	return len(p.Reports) == 0 && !p.Looked && len(p.Counters)+len(p.Errors)+len(p.Histograms) == 0
}

// tapedReports is a ring buffer whose reports are put on a tape.
type tapedReports struct {
	reports
	to *taper
}

func (r *tapedReports) AvailableBytes() int {
	r.to.beginPass()
	return r.reports.AvailableBytes()
}

func (r *tapedReports) ReadInto(rec *ringbuf.Record) error {
	err := r.reports.ReadInto(rec)
	if err == nil {
		r.to.now().Reports = append(r.to.now().Reports, bytes.Clone(rec.RawSample))
	}
	return err
}

// tapedFiles are files whose contents are put on a tape.
type tapedFiles struct {
	Files
	to *taper
}

const maxTapedFile = 1 << 12

func (f tapedFiles) ReadFile(name string) ([]byte, error) {
	b, err := f.Files.ReadFile(name)
	if err == nil && len(b) <= maxTapedFile {
		f.to.tape.Files[name] = string(b)
	}
	return b, err
}

func (f tapedFiles) Readlink(name string) (string, error) {
	text, err := f.Files.Readlink(name)
	if err == nil {
		f.to.tape.Files[name] = text
	}
	return text, err
}

// tapedCounts are maps whose changes are put on a tape.
type tapedCounts struct {
	counts
	to       *taper
	names    []string
	counters map[int]uint64
	errors   map[kernelErrorKey]uint64
	hists    map[uint32]kernelHist
}

func newTapedCounts(tap *Tap, to *taper) *tapedCounts {
	return &tapedCounts{
		tap.counts, to, tap.kernel.counters, map[int]uint64{}, map[kernelErrorKey]uint64{}, map[uint32]kernelHist{},
	}
}

func (c *tapedCounts) counter(number int) (uint64, error) {
	v, err := c.counts.counter(number)
	if err == nil && v != c.counters[number] {
		c.counters[number] = v
		set(&c.to.now().Counters, c.names[number], v)
	}
	return v, err
}

func (c *tapedCounts) histogram(key uint32, of *kernelHist) error {
	err := c.counts.histogram(key, of)
	if err == nil && *of != c.hists[key] {
		c.hists[key] = *of
		steps := map[int]uint32{}
		for step, n := range of.N {
			if n > 0 {
				steps[step] = n
			}
		}
		set(&c.to.now().Histograms, key, steps)
	}
	return err
}

func (c *tapedCounts) eachOp(yield func(kernelOpKey, uint32)) {
	c.counts.eachOp(func(k kernelOpKey, op uint32) {
		c.to.tape.Ops[op] = k
		yield(k, op)
	})
}

func (c *tapedCounts) eachError(yield func(kernelErrorKey, uint64)) {
	c.counts.eachError(func(k kernelErrorKey, n uint64) {
		if n != c.errors[k] {
			c.errors[k] = n
			set(&c.to.now().Errors, k, n)
		}
		yield(k, n)
	})
}

func (c *tapedCounts) operations(key uint32, of *kernelHist) error {
	return c.counts.operations(key, of)
}

func (c *tapedCounts) eachEnded(yield func(uint32, *kernelProcessWaits)) { c.counts.eachEnded(yield) }

func (c *tapedCounts) eachThread(yield func(*kernelThread)) {
	c.to.tape.Threads = nil
	c.counts.eachThread(func(th *kernelThread) {
		c.to.tape.Threads = append(c.to.tape.Threads, bytesOf(th))
		yield(th)
	})
}

func set[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// tapingExchanges reads snapshots that are put on a tape.
type tapingExchanges struct {
	snapshotReader
	to *taper
}

func (e tapingExchanges) read(take func(*kernelConnSnapshot)) (int64, error) {
	e.to.now().Looked = true
	return e.snapshotReader.read(func(c *kernelConnSnapshot) {
		e.to.now().Exchanges = append(e.to.now().Exchanges, bytesOf(c))
		take(c)
	})
}
