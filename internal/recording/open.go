package recording

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
)

// ErrNotRecording says that a file is not a slowpath recording, or not a readable one.
var ErrNotRecording = errors.New("not a slowpath recording")

// maxRows bounds what Open reads into memory per table; a recording at the default --max-disk stays below.
const maxRows = 20_000_000

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

// Open reads a whole recording. A file whose writer was killed opens as well: SQLite replays its WAL.
func Open(path string) (*Recording, error) {
	if err := sniff(path); err != nil {
		return nil, err
	}
	rec, err := load(path, "rw")
	if err != nil && !errors.Is(err, errNewer) {
		// SQLite cannot create the WAL's index in a read-only directory: read the main file as it is.
		if again, err2 := load(path, "immutable"); err2 == nil {
			return again, nil
		}
	}
	return rec, err
}

// sniff recognizes a file that is no SQLite file at all, as opposed to a damaged recording.
func sniff(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening recording: %w", err)
	}
	defer f.Close()
	head := make([]byte, 100)
	if _, err := io.ReadFull(f, head); err != nil || string(head[:16]) != "SQLite format 3\x00" {
		return fmt.Errorf("%s: %w", path, ErrNotRecording)
	}
	return nil
}

var errNewer = errors.New("written by a newer slowpath")

func load(path, mode string) (*Recording, error) {
	db, err := openDB(path, mode)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if err := checkSchema(db); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrNotRecording, err)
	}
	r := New()
	r.shared = map[string]string{}
	if err := r.loadMeta(db); err != nil {
		return nil, fmt.Errorf("%s: %w (%w)", path, ErrNotRecording, err)
	}
	v, err := strconv.Atoi(r.Meta[MetaSchema])
	if err != nil {
		return nil, fmt.Errorf("%s: %w: it has no schema version", path, ErrNotRecording)
	}
	if v > SchemaVersion {
		return nil, fmt.Errorf("%s: %w (schema %d, this program knows %d); update slowpath", path, errNewer, v,
			SchemaVersion)
	}
	for _, t := range []func(*sql.DB) error{
		r.loadCalls, r.loadSegments, r.loadHistograms, r.loadSamples, r.loadConnUses, r.loadEvents,
		r.loadSnapshots, r.loadProfiles,
	} {
		if err := t(db); err != nil {
			return nil, fmt.Errorf("%s: the recording is damaged or cut short: %w", path, err)
		}
	}
	r.sortSegments()
	r.Index()
	r.shared = nil
	return r, nil
}

// share has equal texts of many rows use the same memory.
func (r *Recording) share(texts ...*string) {
	for _, t := range texts {
		one, known := r.shared[*t]
		if !known {
			one = *t
			r.shared[one] = one
		}
		*t = one
	}
}

// checkSchema refuses a file whose rows are computed: a view or a virtual table can have rows without end.
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
	for n := 0; rows.Next(); n++ {
		if n >= maxRows {
			return fmt.Errorf("more than %d rows: %s", maxRows, query)
		}
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (r *Recording) loadMeta(db *sql.DB) error {
	return each(db, "SELECT key, value FROM meta", func(rows *sql.Rows) error {
		var k, v string
		err := rows.Scan(&k, &v)
		r.Meta[k] = v
		return err
	})
}

func (r *Recording) loadCalls(db *sql.DB) error {
	columns := "id,source,conn,op,key_hash,arg_count,request_bytes,reply_bytes,intended_ns,start_ns,end_ns," +
		"node,slot,error"
	switch r.Meta[MetaSchema] {
	case "1":
		columns += ",'','',0 " // side and client came with version 2
	case "2":
		columns += ",side,client,0 " // seq came with version 3
	default:
		columns += ",side,client,seq "
	}
	var c Call
	return each(db, "SELECT "+columns+" FROM call",
		func(rows *sql.Rows) error {
			err := rows.Scan(&c.ID, &c.Source, &c.Conn, &c.Op, &c.KeyHash, &c.ArgCount, &c.RequestBytes, &c.ReplyBytes,
				&c.IntendedNs, &c.StartNs, &c.EndNs, &c.Node, &c.Slot, &c.Error, &c.Side, &c.Client, &c.Seq)
			r.share(&c.Source, &c.Conn, &c.Op, &c.Node, &c.Error, &c.Side, &c.Client)
			r.Calls = append(r.Calls, c)
			return err
		})
}

func (r *Recording) loadSegments(db *sql.DB) error {
	var s Segment
	return each(db, "SELECT call_id,actor,state,from_ns,to_ns,culprit FROM segment",
		func(rows *sql.Rows) error {
			err := rows.Scan(&s.CallID, &s.Actor, &s.State, &s.FromNs, &s.ToNs, &s.Culprit)
			r.addSegment(s.CallID, s)
			return err
		})
}

func (r *Recording) loadHistograms(db *sql.DB) error {
	return each(db, "SELECT second,source,node,op,hdr FROM histogram ORDER BY second", func(rows *sql.Rows) error {
		var h Histogram
		err := rows.Scan(&h.Second, &h.Source, &h.Node, &h.Op, &h.HDR)
		r.Histograms = append(r.Histograms, h)
		return err
	})
}

func (r *Recording) loadSamples(db *sql.DB) error {
	var s Sample
	return each(db, "SELECT time_ns,source,subject,name,value FROM sample",
		func(rows *sql.Rows) error {
			err := rows.Scan(&s.TimeNs, &s.Source, &s.Subject, &s.Name, &s.Value)
			r.addSample(s)
			return err
		})
}

func (r *Recording) loadEvents(db *sql.DB) error {
	var e Event
	return each(db, "SELECT time_ns,duration_ns,source,subject,kind,detail FROM event",
		func(rows *sql.Rows) error {
			err := rows.Scan(&e.TimeNs, &e.DurationNs, &e.Source, &e.Subject, &e.Kind, &e.Detail)
			r.share(&e.Source, &e.Subject, &e.Kind)
			r.Events = append(r.Events, e)
			return err
		})
}

func (r *Recording) loadSnapshots(db *sql.DB) error {
	var s Snapshot
	return each(db, "SELECT time_ns,source,subject,name,body FROM snapshot ORDER BY time_ns",
		func(rows *sql.Rows) error {
			err := rows.Scan(&s.TimeNs, &s.Source, &s.Subject, &s.Name, &s.Body)
			r.share(&s.Source, &s.Subject, &s.Name, &s.Body)
			r.Snapshots = append(r.Snapshots, s)
			return err
		})
}

func (r *Recording) loadProfiles(db *sql.DB) error {
	return each(db, "SELECT time_ns,subject,kind,pprof FROM profile ORDER BY time_ns", func(rows *sql.Rows) error {
		var p Profile
		err := rows.Scan(&p.TimeNs, &p.Subject, &p.Kind, &p.Pprof)
		r.Profiles = append(r.Profiles, p)
		return err
	})
}
