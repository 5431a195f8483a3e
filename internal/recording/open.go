package recording

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrNotRecording says that a file is not a slowpath recording, or not a readable one.
var ErrNotRecording = errors.New("not a slowpath recording")

func openDB(path, mode string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", path, err)
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: abs, RawQuery: "mode=" + mode + "&_pragma=busy_timeout(5000)"}
	if mode == "immutable" {
		u.RawQuery = "mode=ro&immutable=1"
	}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, fmt.Errorf("recording %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// IsFile reports whether a name given on the command line is an existing file rather than an address.
func IsFile(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.Mode().IsRegular()
}

// Open reads a whole recording. A file whose writer was killed opens as well: SQLite replays its WAL. Of a damaged one
// it reads what can be read, and adds a blind spot about the rest (Recording.Damage).
func Open(path string) (*Recording, error) { return Reading{}.Open(path) }

// OpenToJudge is Open, but of a large recording it reads a part that stands for all, and adds events about what it left
// out. What it reads does not depend on anything but the recording.
func OpenToJudge(path string) (*Recording, error) { return Reading{ToJudge: true}.Open(path) }

// Reading is how a recording is opened.
type Reading struct {
	ToJudge bool // as OpenToJudge does
	// Progress, if set, is called now and then with the share of the rows that were read, from 0 to 1.
	Progress func(share float64)
}

// Open reads a recording. Its errors are those of the function Open.
func (r Reading) Open(path string) (*Recording, error) {
	if r.ToJudge {
		return openWithin(path, &judged, r.Progress)
	}
	return openWithin(path, nil, r.Progress)
}

func openWithin(path string, most *bounds, progress func(float64)) (*Recording, error) {
	if err := sniff(path); err != nil {
		return nil, err
	}
	rec, err := load(path, "rw", most, progress)
	if err != nil && !errors.Is(err, errNewer) {
		// SQLite cannot create the WAL's index in a read-only directory, and refuses a file that was cut short: read
		// the main file as it is.
		if again, err2 := load(path, "immutable", most, progress); err2 == nil {
			return again, nil
		}
	}
	return rec, err
}

// sniff recognizes a file that is no SQLite file at all, as opposed to a damaged recording.
func sniff(path string) error {
	head, _, err := header(path)
	if err != nil {
		return fmt.Errorf("opening recording: %w", err)
	}
	if !bytes.HasPrefix(head, []byte("SQLite format 3\x00")) {
		return fmt.Errorf("%s: %w", path, ErrNotRecording)
	}
	return nil
}

// header reads the first bytes of a file, fewer if it is shorter, and the size of it.
func header(path string) (head []byte, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	head = make([]byte, 100)
	if n, err := io.ReadFull(f, head); err != nil {
		head = head[:n] // a short file is no recording
	}
	return head, st.Size(), nil
}

// wholeSize is how many bytes a SQLite file has by its header
// (https://www.sqlite.org/fileformat2.html#the_database_header).
func wholeSize(head []byte) int64 {
	if len(head) < 32 {
		return 0
	}
	return int64(binary.BigEndian.Uint16(head[16:])) * int64(binary.BigEndian.Uint32(head[28:]))
}

var errNewer = errors.New("written by a newer slowpath")

func load(path, mode string, most *bounds, progress func(float64)) (*Recording, error) {
	db, err := openDB(path, mode)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if err := prepareReading(db); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrNotRecording, err)
	}
	x := &reader{db: db, rec: New(), shared: map[string]string{}}
	if err := x.readMeta(); err != nil {
		return nil, fmt.Errorf("%s: %w (%w)", path, ErrNotRecording, err)
	}
	v, err := strconv.Atoi(x.rec.Meta[MetaSchema])
	if err != nil {
		return nil, fmt.Errorf("%s: %w: it has no schema version", path, ErrNotRecording)
	}
	if v > SchemaVersion {
		return nil, fmt.Errorf("%s: %w (schema %d, this program knows %d); update slowpath", path, errNewer, v,
			SchemaVersion)
	}
	if err := x.limit(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrNotRecording, err)
	}
	if most != nil {
		x.rec.packed = newPackedEvents()
		if err := x.selectRows(*most); err != nil && !isDamage(err) { // of a damaged one all is read that is there
			return nil, fmt.Errorf("%s: %w: %w", path, ErrNotRecording, err)
		}
	}
	if progress != nil {
		x.progress, x.rows = progress, x.allRows()
	}
	for _, read := range []func() error{
		x.readCalls, x.readSegments, x.readHistograms, x.readSamples, x.readConnUses, x.readEvents, x.readSnapshots,
		x.readProfiles,
	} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", path, ErrNotRecording, err)
		}
	}
	x.note(path)
	x.noteSelection()
	x.rec.sortSegments()
	x.rec.Index()
	return x.rec, nil
}

// prepareReading bounds values, keeps sorting in memory, has SQLite read a file that was cut short, and refuses one
// whose rows are computed: a view or a virtual table can have rows without end.
func prepareReading(db *sql.DB) error {
	c, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	_, err = sqlite.Limit(c, sqlite3.SQLITE_LIMIT_LENGTH, maxValue)
	if err := errors.Join(err, c.Close()); err != nil {
		return err
	}
	for _, q := range []string{"PRAGMA temp_store=MEMORY", "PRAGMA writable_schema=ON"} {
		if err := execute(db, q); err != nil {
			return err
		}
	}
	return checkSchema(db)
}

// checkSchema refuses a file whose rows are computed.
func checkSchema(db *sql.DB) error {
	found := ""
	err := each(db, `SELECT 'the ' || type || ' ' || name FROM sqlite_schema
		WHERE type NOT IN ('table', 'index') OR type = 'table' AND rootpage = 0
		UNION ALL SELECT 'the computed column ' || x.name || ' of ' || t.name
		FROM sqlite_schema t, pragma_table_xinfo(t.name) x WHERE t.type = 'table' AND x.hidden <> 0 LIMIT 1`,
		func(rows *sql.Rows) error { return rows.Scan(&found) })
	if err == nil && found != "" {
		err = fmt.Errorf("it has %.100q, but a recording has only tables", found)
	}
	return err
}

// each runs a query and calls scan for every row.
func each(db *sql.DB, query string, scan func(*sql.Rows) error) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
