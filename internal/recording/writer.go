package recording

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
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
	queueBytes     = 32 << 20               // of these rows
	flushEvery     = 500 * time.Millisecond // a crash loses at most this much
	flushRows      = 8192
	DefaultMaxDisk = 512 << 20 // bytes
	minMaxDisk     = 1 << 20
	// maxStep bounds a transaction, and maxWAL the file FILE-wal, in bytes.
	maxStep = 1 << 20
	maxWAL  = 4 << 20
)

// Writer writes a recording file, which has one writer only. It is a Sink.
type Writer struct {
	path     string
	db       *sql.DB
	rows     chan row
	flushReq chan chan error
	stop     chan struct{}
	done     chan struct{}
	bytes    atomic.Int64 // of the queued rows
	queued   atomic.Int64 // rows, those that were dropped among them
	dropped  atomic.Int64
	nextCall atomic.Int64
	classes  *classes
	rounds   map[*table]*round
	maxPages int64 // of the file without its WAL
	pageSize int64 // bytes
	step     int64 // bytes that one transaction writes at most
	once     sync.Once
	mu       sync.Mutex
	err      *WriteError   // of the first write that failed; later rows are dropped
	failed   chan struct{} // closed then
	atOnce   bool          // rows are all there already: they wait until there is room
}

// Create makes a recording at path, which must not exist, of at most maxDisk bytes (0: DefaultMaxDisk).
func Create(path string, maxDisk int64) (*Writer, error) {
	file, err := newFile(path)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("recording %s exists already; name another file or remove it: %w", path, os.ErrExist)
	}
	if err != nil {
		return nil, fmt.Errorf("creating recording: %w; name a file in a directory that can be written", err)
	}
	w, err := makeWriter(file, path, maxDisk, false)
	if err != nil {
		outfile.Remove(path)
	}
	return w, err
}

// WriteAtOnce is Create for rows that are all there already, such as those of a longer recording, into an empty file
// that was made at path. Its methods wait until there is room: no row is dropped or sampled, and only the limit thins
// them. A kill leaves a file that cannot be read: give it another name when it is complete.
func WriteAtOnce(file *os.File, path string, maxDisk int64) (*Writer, error) {
	return makeWriter(file, path, maxDisk, true)
}

// makeWriter closes the file: SQLite opens it by its path.
func makeWriter(file *os.File, path string, maxDisk int64, atOnce bool) (*Writer, error) {
	if maxDisk == 0 {
		maxDisk = DefaultMaxDisk
	}
	db, err := openEmpty(file, path, maxDisk)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	w := &Writer{
		path: path, db: db, rows: make(chan row, queueRows), flushReq: make(chan chan error),
		stop: make(chan struct{}), done: make(chan struct{}), failed: make(chan struct{}),
		rounds: map[*table]*round{}, step: min(maxDisk/16, maxStep), classes: newClasses(maxDisk / 32),
		atOnce: atOnce,
	}
	if atOnce {
		w.classes.perInterval = math.MaxInt64
	}
	if err := w.prepare(maxDisk); err != nil {
		db.Close()
		return nil, fmt.Errorf("creating recording %s: %w", path, err)
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
			outfile.Remove(path)
			return nil, fmt.Errorf("%s%s is there already, which SQLite would use: remove it", path, beside)
		}
	}
	return f, nil
}

// openEmpty opens an empty file by its path.
func openEmpty(file *os.File, path string, maxDisk int64) (*sql.DB, error) {
	if maxDisk < minMaxDisk {
		return nil, fmt.Errorf("recording %s: a limit of %d bytes is too small; give at least %d", path, maxDisk,
			minMaxDisk)
	}
	// Not "rwc": root may not open the file of who called sudo with O_CREAT in /tmp (fs.protected_regular).
	db, err := openDB(path, "rw")
	if err != nil {
		return nil, err
	}
	if err = db.Ping(); err == nil {
		err = outfile.OpenTwice(file)
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("creating recording %s: %w", path, err)
	}
	return db, nil
}

// prepare makes the tables, and shares the limit between the file and its WAL. A checkpoint is due long before the WAL
// has its limit, and then the WAL is written from its begin again.
func (w *Writer) prepare(maxDisk int64) error {
	const sharedMemory = 32 << 10 // bytes of FILE-shm
	wal := min(maxDisk/8, maxWAL)
	if err := w.db.QueryRow("PRAGMA page_size").Scan(&w.pageSize); err != nil {
		return err
	}
	w.maxPages = (maxDisk - wal - sharedMemory) / w.pageSize
	journal, synchronous := "WAL", "NORMAL"
	if w.atOnce {
		journal, synchronous = "OFF", "OFF"
	}
	for _, q := range []string{
		"PRAGMA journal_mode=" + journal,
		"PRAGMA synchronous=" + synchronous,
		"PRAGMA temp_store=MEMORY",
		"PRAGMA wal_autocheckpoint=" + strconv.FormatInt(wal/4/w.pageSize, 10),
		"PRAGMA journal_size_limit=" + strconv.FormatInt(wal, 10),
		"PRAGMA application_id=" + strconv.Itoa(applicationID),
		schema,
	} {
		if err := execute(w.db, q); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes what is queued and returns the first error of any write so far.
func (w *Writer) Flush() error {
	reply := make(chan error, 1)
	select {
	case w.flushReq <- reply:
		return <-reply
	case <-w.done:
		return w.failure()
	}
}

// Failed is closed when the file cannot be written any more, such as on a full disk: later rows are dropped.
func (w *Writer) Failed() <-chan struct{} { return w.failed }

// Close writes the rest and closes the file, and removes its WAL. Its error is that of the first write that failed.
func (w *Writer) Close() error {
	w.once.Do(func() {
		close(w.stop)
		<-w.done
		w.finish()
		// On a full disk the last rows stay in the WAL, which the reader knows.
		w.keep(execute(w.db, "PRAGMA wal_checkpoint(TRUNCATE)"))
		w.keep(execute(w.db, "PRAGMA journal_mode=DELETE"))
		w.keep(w.db.Close())
	})
	return w.failure()
}

func (w *Writer) run() {
	defer close(w.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.classes.nextInterval()
			w.drain()
		case reply := <-w.flushReq:
			w.drain()
			reply <- w.failure()
		case <-w.stop:
			w.drain()
			return
		}
	}
}

// drain writes all queued rows, in transactions of at most w.step bytes.
func (w *Writer) drain() {
	for {
		batch, more := w.take()
		if len(batch) > 0 {
			w.keep(w.write(batch))
		}
		if !more {
			return
		}
	}
}

// take takes the next rows from the queue.
func (w *Writer) take() (batch []row, more bool) {
	for bytes := int64(0); len(batch) < flushRows && bytes < w.step; {
		select {
		case r := <-w.rows:
			w.bytes.Add(-r.bytes)
			bytes += r.bytes
			if r.bytes <= w.step {
				batch = append(batch, r)
			} else {
				w.classes.leftOut([]row{r}) // a single row that would take most of the file
			}
		default:
			return batch, false
		}
	}
	return batch, true
}

// write adds rows to the file, which are dropped if that fails, and from then on.
func (w *Writer) write(batch []row) error {
	if w.firstErr() != nil {
		w.dropped.Add(int64(len(batch)))
		return nil
	}
	if ok, err := w.makeRoom(batch); err != nil || !ok {
		w.classes.leftOut(batch)
		return err
	}
	err := w.insert(batch)
	if err != nil {
		w.dropped.Add(int64(len(batch)))
		return err
	}
	w.classes.wrote(batch, 1)
	return nil
}

func (w *Writer) insert(batch []row) error {
	tx, err := w.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	stmts := map[*table]*sql.Stmt{}
	for _, r := range batch {
		st, ok := stmts[r.into]
		if !ok {
			query := insertMeta
			if r.into != nil {
				query = r.into.insert()
			}
			if st, err = tx.Prepare(query); err != nil {
				return err
			}
			stmts[r.into] = st
		}
		if _, err := st.Exec(r.args...); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (w *Writer) firstErr() *WriteError {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// failure is firstErr as an error.
func (w *Writer) failure() error {
	if err := w.firstErr(); err != nil {
		return err
	}
	return nil
}

func execute(db *sql.DB, q string, args ...any) error {
	_, err := db.Exec(q, args...)
	return err
}
