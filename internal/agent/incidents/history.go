package incidents

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"slowpath/internal/agent/folder"
	"slowpath/internal/outfile"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

// History keeps minutes of latency for days, in one SQLite file. It is safe for concurrent use by one process.
type History struct {
	db       *sql.DB
	keep     time.Duration
	maxBytes int64
	note     string

	mu    sync.Mutex
	added int // minutes and entries since the last time that old ones were removed
}

// Defaults and bounds of a history.
const (
	DefaultKeepHistory = 30 * 24 * time.Hour
	DefaultHistory     = 512 << 20 // bytes
	minHistory         = 1 << 20

	tidyEach   = 256      // minutes that are added
	maxHDR     = 64 << 10 // bytes of a histogram
	maxMinutes = 2_000_000
)

const historySchema = `
CREATE TABLE IF NOT EXISTS minute(start INTEGER, node TEXT, own INTEGER, numbers BLOB, hdr BLOB,
  PRIMARY KEY(start, node, own)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entry(at INTEGER PRIMARY KEY, body TEXT);
`

// OpenHistory opens the history in a file of this name, of at most maxBytes (0: DefaultHistory), with minutes of the
// last keep (0: DefaultKeepHistory). A file that cannot be read gets another name, and Note says so.
func OpenHistory(in *folder.Folder, name string, keep time.Duration, maxBytes int64) (*History, error) {
	if keep <= 0 {
		keep = DefaultKeepHistory
	}
	if maxBytes <= 0 {
		maxBytes = DefaultHistory
	}
	if maxBytes < minHistory {
		return nil, fmt.Errorf("history %s: a limit of %d bytes is too small; give at least %d", name, maxBytes,
			minHistory)
	}
	h := &History{keep: keep, maxBytes: maxBytes}
	err := h.open(in, name)
	if err != nil && in.Size(name) == 0 {
		return nil, fmt.Errorf("history: %w", err)
	}
	if err != nil {
		aside := name + ".damaged"
		for _, end := range []string{"", "-wal", "-shm"} {
			_ = in.Rename(name+end, aside+end)
		}
		h.note = fmt.Sprintf("the history %s cannot be read (%v): it is now %s", name, err, aside)
		if err := h.open(in, name); err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
	}
	return h, h.tidy()
}

func (h *History) open(in *folder.Folder, name string) error {
	file, err := in.OpenFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	db, err := opened(file, in.Path(name))
	// Now: once SQLite has locked the file, closing it here would free the lock.
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	const pageSize = 4096
	for _, q := range []string{
		"PRAGMA auto_vacuum=INCREMENTAL", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL",
		"PRAGMA temp_store=MEMORY", "PRAGMA wal_autocheckpoint=64", "PRAGMA journal_size_limit=262144",
		// a guard: tidy keeps well below it
		"PRAGMA max_page_count=" + strconv.FormatInt(h.maxBytes/pageSize, 10),
		historySchema, "SELECT count(*) FROM (SELECT 1 FROM minute LIMIT 1)",
	} {
		if _, err := db.Exec(q); err != nil {
			db.Close()
			return err
		}
	}
	h.db = db
	return nil
}

// opened is this file as SQLite opens it by its path.
func opened(file *os.File, path string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: abs, RawQuery: "mode=rw&_pragma=busy_timeout(5000)"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err = db.Ping(); err == nil {
		err = outfile.OpenTwice(file)
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// Note is a sentence about what OpenHistory found that was not as it should be; empty: nothing.
func (h *History) Note() string { return h.note }

// ErrBadMinute says that a minute cannot be one.
var ErrBadMinute = errors.New("a minute begins at a multiple of 60 seconds, and has a node")

// Add adds a minute; of the same minute, node and Own the last one counts.
func (h *History) Add(m Minute) error {
	if m.Start <= 0 || m.Start%60 != 0 || m.Node == "" || len(m.Node) > maxText || len(m.HDR) > maxHDR {
		return ErrBadMinute
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.db.Exec("INSERT OR REPLACE INTO minute VALUES(?,?,?,?,?)", m.Start, m.Node, m.Own, m.pack(), m.HDR)
	if err != nil {
		return fmt.Errorf("keeping a minute of history: %w", err)
	}
	if h.added++; h.added < tidyEach {
		return nil
	}
	return h.tidy()
}

// numbers are those of a minute; flags are Complete and AtServer. Earlier versions wrote the first firstNumbers.
func (m *Minute) numbers(flags *int64) [8]*int64 {
	return [...]*int64{&m.Calls, &m.Slow, &m.Failed, &m.P50Ns, &m.P99Ns, &m.MaxNs, &m.ThresholdNs, flags}
}

// Flags of a minute.
const (
	isComplete = 1 << iota
	isAtServer
)

const firstNumbers = 6

// pack is the column numbers: SQLite takes as long for each column as for the rest of a row.
func (m *Minute) pack() []byte {
	packed, flags := make([]byte, 0, 24), int64(0)
	if m.Complete {
		flags |= isComplete
	}
	if m.AtServer {
		flags |= isAtServer
	}
	for _, v := range m.numbers(&flags) {
		packed = binary.AppendVarint(packed, *v)
	}
	return packed
}

func (m *Minute) unpack(packed []byte) bool {
	flags := int64(0)
	m.ThresholdNs = 0
	for i, v := range m.numbers(&flags) {
		if i == firstNumbers && len(packed) == 0 {
			break
		}
		d, n := binary.Varint(packed)
		if n <= 0 {
			return false
		}
		*v, packed = d, packed[n:]
	}
	m.Complete, m.AtServer = flags&isComplete != 0, flags&isAtServer != 0
	return len(packed) == 0
}

// tidy removes minutes that are too old, or have no room. How old they are is counted from the newest, which is not
// later than now: after a pause the minutes before it stay until there are new ones, and a clock that was set back
// removes nothing.
func (h *History) tidy() error {
	h.added = 0
	newest := "(SELECT min(coalesce(max(start), 0), ?) FROM minute)"
	_, err := h.db.Exec("DELETE FROM minute WHERE start < "+newest+" - ?", time.Now().Unix()+60,
		int64(h.keep.Seconds()))
	for range 100 {
		if err == nil {
			_, err = h.db.Exec("DELETE FROM entry WHERE at < (SELECT 1000000000 * min(start) FROM minute)")
		}
		if err != nil {
			break
		}
		var pages, free, size int64
		err = h.db.QueryRow("SELECT p.page_count, f.freelist_count, s.page_size FROM pragma_page_count p, "+
			"pragma_freelist_count f, pragma_page_size s").Scan(&pages, &free, &size)
		if err != nil || (pages-free)*size <= h.maxBytes*8/10 {
			break
		}
		_, err = h.db.Exec("DELETE FROM minute WHERE start <= (SELECT start FROM minute ORDER BY start LIMIT 1 " +
			"OFFSET (SELECT count(*) / 20 FROM minute))")
	}
	if err == nil {
		_, err = h.db.Exec("PRAGMA incremental_vacuum")
	}
	if err != nil {
		return fmt.Errorf("tidying the history: %w", err)
	}
	return nil
}

// Minutes are those that begin in [from, to), in Unix seconds, by time and node.
func (h *History) Minutes(from, to int64) (out []Minute, err error) {
	err = h.Each(from, to, true, func(m Minute) {
		m.HDR = bytes.Clone(m.HDR)
		out = append(out, m)
	})
	return out, err
}

// Each hands on the minutes that begin in [from, to), in Unix seconds, by time and node: of many days that takes no
// memory. Without histograms it is faster. A histogram is valid during the call.
func (h *History) Each(from, to int64, histograms bool, f func(Minute)) error {
	column := "NULL"
	if histograms {
		column = "hdr"
	}
	rows, err := h.db.Query("SELECT start, node, own, numbers, "+column+" FROM minute WHERE start >= ? AND start < ? "+
		"ORDER BY start, node, own LIMIT ?", from, to, maxMinutes)
	if err != nil {
		return fmt.Errorf("reading the history: %w", err)
	}
	defer rows.Close()
	var m Minute
	var node, packed, hdr sql.RawBytes
	names := map[string]string{}
	for rows.Next() {
		if err := rows.Scan(&m.Start, &node, &m.Own, &packed, &hdr); err != nil {
			return fmt.Errorf("reading the history: %w", err)
		}
		if !m.unpack(packed) {
			continue // nobody of this program wrote it
		}
		name, known := names[string(node)]
		if !known {
			name = string(node)
			names[name] = name
		}
		m.Node, m.HDR = name, hdr
		f(m)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading the history: %w", err)
	}
	return nil
}

// Close closes the file.
func (h *History) Close() error { return h.db.Close() }
