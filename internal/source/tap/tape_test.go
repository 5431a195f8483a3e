//go:build linux

package tap

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// A tape is all that a real watch read of the kernel and of files, pass by pass. What the tap makes of it is tested
// without a kernel, a server, or a clock that runs by itself. The tests of the real layer that make tapes check the
// same of their own watch; with -record they write them to testdata.
type tape struct {
	Layout  string  // see layout
	Options Options // of the watch, without what is handed in
	Offset  int64   // from CLOCK_MONOTONIC
	Passes  []tapedPass
	Ops     map[uint32]kernelOpKey
	Threads [][]byte // kernelThread, at the end of the watch
	Files   map[string]string
	Quotas  map[int]tapedQuota
	Made    []byte // what the test made, for its check
}

// tapedPass is what one pass read. Of counters, histograms and errors it has those that changed.
type tapedPass struct {
	At         int64
	Reports    [][]byte
	Exchanges  [][]byte // kernelConnSnapshot,
	Looked     bool     // if there was a snapshot
	Counters   map[string]uint64
	Errors     map[kernelErrorKey]uint64
	Histograms map[uint32]map[int]uint32 // steps that are not 0
}

type tapedQuota struct {
	Cgroup string
	Cores  float64
}

// maxTape is the size of a tape on disk: with more, a test should make less.
const maxTape = 100 << 10

const recordAgain = "go test ./internal/source/tap -run TestReal -record, as root"

// layout is a hash of what the programs' reports look like to Go: sizes and fields of their types, numbers of their
// kinds and flags. A tape of another one cannot be read.
func layout() string {
	h := sha256.New()
	for _, v := range []any{
		kernelCallEvent{},
		kernelConnEvent{},
		kernelActivityEvent{},
		kernelOffcpuEvent{},
		kernelRetransEvent{},
		kernelAckedEvent{},
		kernelDnsEvent{},
		kernelFunctionEvent{},
		kernelCollectionEvent{},
		kernelConnSnapshot{},
		kernelThread{},
		kernelOpKey{},
		kernelErrorKey{},
		kernelHist{},
	} {
		describe(h, reflect.TypeOf(v))
	}
	fmt.Fprint(h, evCall, evActivity, evOffCPU, evOpen, evClose, evStatus, evRetrans, evFunction, evAcked, evDNS,
		evCollection, flagSampled, flagMerged, flagFresh, flagError, flagTLS, flagPaired, flagQuiet, flagPieces,
		flagBlocking, flagOpening, ownObserver, otherObserver, roleServer, roleClient, runnable, throttled, frozen,
		blocked, asleep, clocks)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func describe(w io.Writer, t reflect.Type) {
	fmt.Fprintln(w, t.Kind(), t.Size())
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			fmt.Fprintln(w, t.Field(i).Name, t.Field(i).Offset)
			describe(w, t.Field(i).Type)
		}
	case reflect.Array:
		describe(w, t.Elem())
	default:
	}
}

func tapePath(name string) string { return "testdata/" + name + ".tape" }

// playTape has a tap read a tape again, and gives what it recorded, and what the test had made. With change the options
// are others.
func playTape[M any](t *testing.T, name string, change func(*Options)) (rec *recording.Recording, made M) {
	t.Helper()
	b, err := os.ReadFile(tapePath(name))
	if err != nil {
		t.Fatalf("%v; to record it: %s", err, recordAgain)
	}
	if len(b) > maxTape {
		t.Errorf("%s has %d bytes, more than %d", tapePath(name), len(b), maxTape)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	var p tape
	if err := gob.NewDecoder(z).Decode(&p); err != nil {
		t.Fatal(err)
	}
	if p.Layout != layout() {
		t.Fatalf("%s is of other kernel programs; record again: %s", tapePath(name), recordAgain)
	}
	if err := gob.NewDecoder(bytes.NewReader(p.Made)).Decode(&made); err != nil {
		t.Fatal(err)
	}
	return p.play(t, change), made
}

// play has a tap read the tape, pass by pass.
func (p *tape) play(t *testing.T, change func(*Options)) *recording.Recording {
	t.Helper()
	names := namesOfCounters(t)
	rec := recording.New()
	r := &tapeReader{tape: p, names: names, counters: map[string]uint64{}, errors: map[kernelErrorKey]uint64{}}
	r.hists = map[uint32]map[int]uint32{}
	o := p.Options
	o.Clock, o.Files, o.Sink = r, r, rec
	if len(p.Quotas) > 0 {
		o.Quota = func(tid int) (string, float64) { q := p.Quotas[tid]; return q.Cgroup, q.Cores }
	}
	if change != nil {
		change(&o)
	}
	tap := &Tap{
		Options: o, kernel: &loaded{counters: names}, reports: r, counts: r, offset: p.Offset,
		collections: newCollectionWatch(nil, r), plaintexts: newPlaintextWatch(nil, r),
	}
	tap.follows(o.Nodes)
	tap.snapshots = (*tapedExchanges)(r)
	tap.recorder.sample.put = func(uint16, bool) bool { return true }
	tap.recorder.sample.tell = tap.tellLeftOut
	for i := range p.Passes {
		r.turnTo(&p.Passes[i])
		if i == 0 {
			tap.begin()
		}
		tap.nextSnapshot = endOfWatch
		if r.pass.Looked {
			tap.nextSnapshot = 0
		}
		if _, err := tap.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if err := tap.finish(); err != nil {
		t.Fatal(err)
	}
	rec.Index()
	return rec
}

func namesOfCounters(t *testing.T) []string {
	t.Helper()
	spec, err := loadKernel()
	if err != nil {
		t.Fatal(err)
	}
	names, err := counterNames(spec)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// tapeReader is the clock, the files, the ring buffer and the maps of a tape.
type tapeReader struct {
	*tape
	names    []string // of counters
	pass     *tapedPass
	reports  [][]byte // that are left of the pass
	counters map[string]uint64
	errors   map[kernelErrorKey]uint64
	hists    map[uint32]map[int]uint32
}

func (r *tapeReader) turnTo(p *tapedPass) {
	r.pass, r.reports = p, p.Reports
	for name, v := range p.Counters {
		r.counters[name] = v
	}
	for k, v := range p.Errors {
		r.errors[k] = v
	}
	for k, h := range p.Histograms {
		r.hists[k] = h
	}
}

func (r *tapeReader) Now() int64                           { return r.pass.At }
func (r *tapeReader) Path(name string) string              { return "/no-such-directory" + name }
func (r *tapeReader) Readlink(name string) (string, error) { return r.file(name) }
func (r *tapeReader) Close() error                         { return nil }
func (r *tapeReader) SetDeadline(time.Time)                {}

func (r *tapeReader) ReadFile(name string) ([]byte, error) {
	text, err := r.file(name)
	return []byte(text), err
}

func (r *tapeReader) Open(string) (hostfs.File, error) { return nil, os.ErrNotExist }

func (r *tapeReader) ReadDir(string) ([]string, error) { return nil, os.ErrNotExist }

func (r *tapeReader) file(name string) (string, error) {
	if text, ok := r.Files[name]; ok {
		return text, nil
	}
	return "", os.ErrNotExist
}

func (r *tapeReader) AvailableBytes() (n int) {
	for _, b := range r.reports {
		n += len(b) + 8
	}
	return n
}

func (r *tapeReader) ReadInto(to *ringbuf.Record) error {
	if len(r.reports) == 0 {
		return os.ErrDeadlineExceeded
	}
	to.RawSample, r.reports = r.reports[0], r.reports[1:]
	return nil
}

func (r *tapeReader) counter(number int) (uint64, error) { return r.counters[r.names[number]], nil }

func (r *tapeReader) histogram(key uint32, of *kernelHist) error {
	*of = kernelHist{}
	for step, n := range r.hists[key] {
		of.N[step] = n
	}
	return nil
}

func (r *tapeReader) eachOp(yield func(kernelOpKey, uint32)) {
	for number, k := range r.Ops {
		yield(k, number)
	}
}

func (r *tapeReader) eachError(yield func(kernelErrorKey, uint64)) {
	for k, n := range r.errors {
		yield(k, n)
	}
}

// operations, eachEnded, eachPeer and eachSystemCall: there are none on a tape.
func (r *tapeReader) operations(uint32, *kernelHist) error { return os.ErrNotExist }

func (r *tapeReader) eachEnded(func(uint32, *kernelProcessWaits)) {}

func (r *tapeReader) eachPeer(func(kernelPeerKey, kernelPeer)) {}

func (r *tapeReader) eachSystemCall(func(kernelSleepKey, kernelSleeps)) {}

func (r *tapeReader) eachThread(yield func(*kernelThread)) {
	for _, b := range r.Threads {
		dispatch(b, yield)
	}
}

// tapedExchanges are the snapshots of a tape.
type tapedExchanges tapeReader

func (r *tapedExchanges) read(take func(*kernelConnSnapshot)) (cpuNs int64, err error) {
	for _, b := range r.pass.Exchanges {
		dispatch(b, take)
	}
	return 0, nil
}

func (r *tapedExchanges) Close() error { return nil }

// bytesOf a value as the kernel has it.
func bytesOf[T any](v *T) []byte {
	return bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)))
}

// TestTapeOfOtherPrograms: the layout depends on each field of a report.
func TestTapeOfOtherPrograms(t *testing.T) {
	of := func(v any) string {
		var b bytes.Buffer
		describe(&b, reflect.TypeOf(v))
		return b.String()
	}
	type report struct {
		Type, Role uint8
		At         [4]uint64
	}
	for name, other := range map[string]any{
		"a field moved": struct {
			Role, Type uint8
			At         [4]uint64
		}{},
		"an array grew": struct {
			Type, Role uint8
			At         [5]uint64
		}{},
		"a field is wider": struct {
			Type uint8
			Role uint16
			At   [4]uint64
		}{},
	} {
		if of(other) == of(report{}) {
			t.Errorf("%s, and the layout is the same", name)
		}
	}
}
