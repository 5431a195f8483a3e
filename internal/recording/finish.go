package recording

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"slowpath/internal/format"
)

// keep keeps the first error; with it the recording ends, and the watch can.
func (w *Writer) keep(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || err == nil {
		return
	}
	w.err = &WriteError{w.path, time.Now(), err}
	close(w.failed)
}

// WriteError says that a recording could not be written any more. What was written before is kept.
type WriteError struct {
	path string
	at   time.Time
	err  error
}

// Error implements error.
func (e *WriteError) Error() string {
	fix := "name a file on another disk"
	if e.full() {
		fix = "make room, or " + fix
	}
	return fmt.Sprintf("recording %s %s; what was seen before is kept; %s", e.path, e.reason(), fix)
}

// Unwrap gives the error of the write.
func (e *WriteError) Unwrap() error { return e.err }

func (e *WriteError) full() bool {
	var known *sqlite.Error
	return errors.As(e.err, &known) && known.Code()&0xff == sqlite3.SQLITE_FULL
}

func (e *WriteError) reason() string {
	what := "could not be written"
	if e.full() {
		what = "filled its disk"
	}
	return fmt.Sprintf("%s at %s (%v)", what, clockTime(e.at), e.err)
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }

// finish writes what the file does not have although sources wrote it. On a full disk there is often room for these few
// rows; where there is none, the reader sees that the end is missing.
func (w *Writer) finish() {
	if e := w.firstErr(); e != nil {
		_ = execute(w.db, insertMeta, MetaEnd, strconv.FormatInt(e.at.UnixNano(), 10))
		_ = note(w.db, e.at, KindBlindSpot, Detail(BlindSpot{
			What: "everything after " + clockTime(e.at), Why: "the recording " + e.reason(),
			Enable: "record to a disk with more room",
		}))
	}
	w.keep(w.noteMissing(w.db))
}

// noteMissing writes into the recording, or a copy of it, how many rows it does not have.
func (w *Writer) noteMissing(db *sql.DB) (err error) {
	if n := w.dropped.Load(); n > 0 && w.firstErr() == nil {
		err = execute(db, insertMeta, MetaDropped, strconv.FormatInt(n, 10))
	}
	if n := w.classes.missing(); n > 0 {
		err = errors.Join(err, execute(db, insertMeta, MetaThinned, strconv.FormatInt(n, 10)))
	}
	for _, u := range w.unseen() {
		err = errors.Join(err, note(db, time.Now(), KindUnseen, Detail(u)))
	}
	return err
}

// note writes an event about the recording itself.
func note(db *sql.DB, at time.Time, kind, detail string) error {
	return execute(db, eventTable.insert(), at.UnixNano(), 0, SourceRecording, SubjectSelf, kind, detail)
}

// unseen is what the file does not have although sources wrote it. Of what was thinned the rest stands for all: calls
// are counted in histograms, which are added up.
func (w *Writer) unseen() (out []Unseen) {
	w.classes.mu.Lock()
	defer w.classes.mu.Unlock()
	const reached = "the recording reached its limit (--max-disk): the oldest and most frequent rows were thinned"
	if n := w.dropped.Load(); n > 0 && w.err == nil {
		out = append(out, Unseen{
			What: "rows of evidence", Count: float64(n), Of: float64(w.queued.Load()),
			Why: "the recording could not be written as fast as evidence came in", Enable: "record to a faster disk",
		})
	}
	if c := w.classes.all[slowCalls]; c != nil && c.out > 0 {
		out = append(out, Unseen{
			What: slowCalls + " one by one", Count: float64(c.out), Of: float64(c.offered),
			Why: reached + ", and then the fastest of the slow calls", Enable: "a larger --max-disk", Counted: true,
		})
	}
	if u, ok := w.classes.thinned(); ok {
		u.Why, u.Enable = reached, "a larger --max-disk"
		out = append(out, u)
	}
	return out
}

// missing is how many rows were left out or deleted again.
func (cs *classes) missing() (n int64) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.all {
		n += c.out
	}
	return n
}

// thinned says which rows were thinned that are not slow calls, those of which most are missing first.
func (cs *classes) thinned() (u Unseen, ok bool) {
	const most = 4 // classes that are named
	var all []*class
	for _, c := range cs.all {
		if c.out > 0 && c.name != slowCalls && c.into != segmentTable {
			all = append(all, c)
			u.Count, u.Of = u.Count+float64(c.out), u.Of+float64(c.offered)
		}
	}
	slices.SortFunc(all, func(a, b *class) int {
		if a.out != b.out {
			return int(b.out - a.out)
		}
		return strings.Compare(a.name, b.name)
	})
	var names []string
	for _, c := range all[:min(len(all), most)] {
		names = append(names, fmt.Sprintf("%s (%s are kept)", c.name,
			format.Percent(1-float64(c.out)/float64(max(c.offered, 1)))))
	}
	if len(all) > most {
		names = append(names, fmt.Sprintf("%d kinds more", len(all)-most))
	}
	u.What, u.Counted = "rows one by one: "+strings.Join(names, ", "), true
	return u, len(all) > 0
}

// makeRoom thins the file until it has room for rows. False: everything that can be thinned was.
func (w *Writer) makeRoom(batch []row) (bool, error) {
	const reserve = 12 // pages: a new one for each table, and what finish writes
	var bytes int64
	for _, r := range batch {
		bytes += r.bytes
	}
	for {
		var pages, free int64
		if err := w.db.QueryRow("SELECT p.page_count, f.freelist_count FROM pragma_page_count p, "+
			"pragma_freelist_count f").Scan(&pages, &free); err != nil {
			return false, err
		}
		if w.maxPages-(pages-free)-reserve >= bytes*5/4/w.pageSize {
			return true, nil
		}
		if thinned, err := w.thinOnce(); err != nil || !thinned {
			return false, err
		}
	}
}
