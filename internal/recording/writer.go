package recording

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"slowpath/internal/outfile"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

// Limits of a writer.
const (
	queueRows      = 65536                  // rows queued in memory; more are dropped and counted
	flushEvery     = 500 * time.Millisecond // a crash loses at most this much
	flushRows      = 8192
	DefaultMaxDisk = 512 << 20 // bytes
	minMaxDisk     = 1 << 20
)

// Writer writes a recording file, which has one writer only. It is a Sink.
type Writer struct {
	path     string
	db       *sql.DB
	rows     chan row
	flushReq chan chan error
	stop     chan struct{}
	done     chan struct{}
	queued   atomic.Int64 // rows, those that were dropped among them
	dropped  atomic.Int64
	thinned  int64 // rows that were deleted again
	nextCall atomic.Int64
	maxDisk  int64
	once     sync.Once
	mu       sync.Mutex
	err      error // first write error; later rows are dropped
}

type row struct {
	query string
	args  []any
}

// Create makes a recording at path, which must not exist, of at most maxDisk bytes (0: DefaultMaxDisk).
func Create(path string, maxDisk int64) (*Writer, error) {
	if maxDisk == 0 {
		maxDisk = DefaultMaxDisk
	}
	if maxDisk < minMaxDisk {
		return nil, fmt.Errorf("recording %s: a limit of %d bytes is too small; give at least %d", path, maxDisk,
			minMaxDisk)
	}
	f, err := newFile(path)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("recording %s exists already; name another file or remove it: %w", path, os.ErrExist)
	}
	if err != nil {
		return nil, fmt.Errorf("creating recording: %w", err)
	}
	f.Close()
	db, err := openDB(path, "rwc")
	if err != nil {
		return nil, err
	}
	for _, q := range []string{
		"PRAGMA auto_vacuum=INCREMENTAL",
		"PRAGMA journal_mode=WAL",
		"PRAGMA synchronous=NORMAL",
		"PRAGMA journal_size_limit=8388608",
		"PRAGMA application_id=" + strconv.Itoa(applicationID),
		schema,
	} {
		if _, err := db.Exec(q); err != nil {
			db.Close()
			return nil, fmt.Errorf("creating recording %s: %w", path, err)
		}
	}
	w := &Writer{
		path: path, db: db, rows: make(chan row, queueRows), flushReq: make(chan chan error),
		stop: make(chan struct{}), done: make(chan struct{}), maxDisk: maxDisk,
	}
	w.SetMeta(MetaSchema, strconv.Itoa(SchemaVersion))
	go w.run()
	if err := w.Flush(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// newFile makes an empty file. SQLite opens files beside it by name: what lies there already is somebody else's.
func newFile(path string) (*os.File, error) {
	f, err := outfile.Create(path)
	if err != nil {
		return nil, err
	}
	for _, beside := range []string{"-journal", "-wal", "-shm"} {
		if _, err := os.Lstat(path + beside); err == nil {
			f.Close()
			os.Remove(path)
			return nil, fmt.Errorf("%s%s is there already, which SQLite would use: remove it", path, beside)
		}
	}
	return f, nil
}

// Call adds a call with the segments that its source measured. A call without an id is given the next one.
func (w *Writer) Call(c Call, segs ...Segment) {
	if c.ID == 0 {
		c.ID = w.nextCall.Add(1)
	}
	w.put(row{insertCall, []any{
		c.ID, c.Source, c.Conn, c.Op, c.KeyHash, c.ArgCount, c.RequestBytes, c.ReplyBytes,
		c.IntendedNs, c.StartNs, c.EndNs, c.Node, c.Slot, c.Error, c.Side, c.Client, c.Seq,
	}})
	for _, s := range segs {
		w.put(row{insertSegment, []any{c.ID, s.Actor, s.State, s.FromNs, s.ToNs, s.Culprit}})
	}
}

// Histogram adds the latencies of one second.
func (w *Writer) Histogram(h Histogram) {
	w.put(row{insertHistogram, []any{h.Second, h.Source, h.Node, h.Op, h.HDR}})
}

// Sample adds a number.
func (w *Writer) Sample(s Sample) {
	w.put(row{insertSample, []any{s.TimeNs, s.Source, s.Subject, s.Name, s.Value}})
}

// Event adds something that happened.
func (w *Writer) Event(e Event) {
	w.put(row{insertEvent, []any{e.TimeNs, e.DurationNs, e.Source, e.Subject, e.Kind, e.Detail}})
}

// Snapshot adds a text.
func (w *Writer) Snapshot(s Snapshot) {
	w.put(row{insertSnapshot, []any{s.TimeNs, s.Source, s.Subject, s.Name, s.Body}})
}

// Profile adds a profile.
func (w *Writer) Profile(p Profile) {
	w.put(row{insertProfile, []any{p.TimeNs, p.Subject, p.Kind, p.Pprof}})
}

// SetMeta sets a property of the whole recording; the last value of a key counts.
func (w *Writer) SetMeta(key, value string) { w.put(row{insertMeta, []any{key, value}}) }

func (w *Writer) put(r row) {
	w.queued.Add(1)
	select {
	case w.rows <- r:
	default:
		w.dropped.Add(1)
	}
}

// Flush writes what is queued and returns the first error of any write so far.
func (w *Writer) Flush() error {
	reply := make(chan error, 1)
	select {
	case w.flushReq <- reply:
		return <-reply
	case <-w.done:
		return w.firstErr()
	}
}

// Close writes the rest and closes the file, and removes its WAL.
func (w *Writer) Close() error {
	w.once.Do(func() {
		close(w.stop)
		<-w.done
		if n := w.dropped.Load(); n > 0 {
			w.keep(execute(w.db, insertMeta, MetaDropped, strconv.FormatInt(n, 10)))
		}
		for _, u := range w.unseen() {
			w.keep(execute(w.db, insertEvent, time.Now().UnixNano(), 0, SourceRecording, SubjectSelf, KindUnseen,
				Detail(u)))
		}
		w.keep(execute(w.db, "PRAGMA wal_checkpoint(TRUNCATE)"))
		w.keep(execute(w.db, "PRAGMA journal_mode=DELETE"))
		w.keep(w.db.Close())
	})
	return w.firstErr()
}

// unseen is what the file does not have although sources wrote it.
func (w *Writer) unseen() (out []Unseen) {
	all := float64(w.queued.Load())
	if n := w.dropped.Load(); n > 0 {
		out = append(out, Unseen{
			What: "rows of evidence", Count: float64(n), Of: all,
			Why: "the recording could not be written as fast as evidence came in", Enable: "record to a faster disk",
		})
	}
	if w.thinned > 0 {
		out = append(out, Unseen{
			What: "older rows of evidence", Count: float64(w.thinned), Of: all,
			Why: "the recording reached its limit, and its oldest rows were thinned", Enable: "a larger --max-disk",
		})
	}
	return out
}

func (w *Writer) run() {
	defer close(w.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.drain()
		case reply := <-w.flushReq:
			w.drain()
			reply <- w.firstErr()
		case <-w.stop:
			w.drain()
			return
		}
	}
}

// drain writes all queued rows, in transactions of at most flushRows.
func (w *Writer) drain() {
	for {
		n, err := w.batch()
		w.keep(err)
		if n < flushRows {
			break
		}
	}
	w.keep(w.thin())
}

func (w *Writer) batch() (int, error) {
	if len(w.rows) == 0 {
		return 0, nil
	}
	tx, err := w.db.Begin()
	if err != nil {
		return 0, fmt.Errorf("writing recording %s: %w", w.path, err)
	}
	defer tx.Rollback()
	stmts := map[string]*sql.Stmt{}
	n := 0
	for ; n < flushRows; n++ {
		var r row
		select {
		case r = <-w.rows:
		default:
			return n, wrapWrite(w.path, tx.Commit())
		}
		st, ok := stmts[r.query]
		if !ok {
			if st, err = tx.Prepare(r.query); err != nil {
				return n, wrapWrite(w.path, err)
			}
			stmts[r.query] = st
		}
		if _, err := st.Exec(r.args...); err != nil {
			w.dropped.Add(1)
			return n, wrapWrite(w.path, err)
		}
	}
	return n, wrapWrite(w.path, tx.Commit())
}

func wrapWrite(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("writing recording %s (what was written before stays readable): %w", path, err)
}

func (w *Writer) keep(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

func (w *Writer) firstErr() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func execute(db *sql.DB, q string, args ...any) error {
	_, err := db.Exec(q, args...)
	return err
}
