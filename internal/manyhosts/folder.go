package manyhosts

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed" // the schema
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

//go:embed schema.sql
var schema string

// schemaVersion changes with the schema, and with what is made of a recording: a file of another one is made anew.
const schemaVersion = 6

// Bounds of a folder.
const (
	maxFiles     = 10_000 // recordings, the newest
	maxEntries   = 1_000_000
	maxDiagnosis = 32 << 20
)

// FolderOptions of OpenFolder.
type FolderOptions struct {
	Paths   []string // directories, and recordings
	Index   string   // the SQLite file, which is made, or brought up to date
	Version string   // of this program
	Say     func(string)
	Show    func(format string, args ...any) // how far it is
	// Keep has rows of files stay that are there and not among Paths.
	Keep bool
	// From and To are what Span tells; zero: the time of all rows.
	From, To time.Time
}

// Folder is recordings whose rows are in a SQLite file.
type Folder struct {
	db       *sql.DB
	from, to time.Time
}

// ErrNoRecordings says that there is nothing to ask.
var ErrNoRecordings = errors.New("there is no recording (FILE.slowpath); slowpath record makes one, and the agent " +
	"keeps those of incidents")

// OpenFolder brings the rows of recordings up to date. A recording that cannot be read is told of, and left out.
func OpenFolder(ctx context.Context, o FolderOptions) (*Folder, error) {
	paths, err := recordingsOf(o)
	if err != nil {
		return nil, err
	}
	f, err := openIndex(o.Index)
	if err != nil {
		return nil, err
	}
	f.from, f.to = o.From, o.To
	if err := f.update(ctx, o, paths); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// found is a recording that was found.
type found struct {
	path             string
	bytes, changedNs int64
}

func recordingsOf(o FolderOptions) (all []found, err error) {
	entries := 0
	for _, named := range o.Paths {
		root, err := filepath.EvalSymlinks(named) // a link that the user names
		if err != nil {
			return nil, err
		}
		err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if entries++; entries > maxEntries {
				return fs.SkipAll
			}
			if err != nil {
				if path == root {
					return err
				}
				o.Say(fmt.Sprintf("%s is left out: %v", path, err))
				return nil
			}
			if !d.Type().IsRegular() || path != root && filepath.Ext(path) != ".slowpath" {
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil // it was removed
			}
			all = append(all, found{path, info.Size(), info.ModTime().UnixNano()})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if entries > maxEntries {
		o.Say(fmt.Sprintf("there are more than %d files: those after them were not looked at", maxEntries))
	}
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(a.path, b.path) })
	all = slices.CompactFunc(all, func(a, b found) bool { return a.path == b.path })
	if len(all) > maxFiles {
		o.Say(fmt.Sprintf("of %d recordings the %d that were written last are asked", len(all), maxFiles))
		slices.SortFunc(all, func(a, b found) int { return cmp.Compare(b.changedNs, a.changedNs) })
		all = all[:maxFiles]
	}
	if len(all) == 0 {
		return nil, ErrNoRecordings
	}
	return all, nil
}

func openIndex(path string) (*Folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(abs); err == nil && !own(info) {
		return nil, fmt.Errorf("%s is no index of this user: move it away", path)
	}
	open := func() (*Folder, int, error) {
		u := url.URL{Scheme: "file", OmitHost: true, Path: abs, RawQuery: "_pragma=busy_timeout(5000)"}
		db, err := sql.Open("sqlite", u.String())
		if err != nil {
			return nil, 0, err
		}
		db.SetMaxOpenConns(1)
		var version int
		err = db.QueryRow("PRAGMA user_version").Scan(&version)
		return &Folder{db: db}, version, err
	}
	f, version, err := open()
	if err == nil && version == schemaVersion {
		return f, nil
	}
	if f != nil {
		f.Close()
	}
	if info, statErr := os.Lstat(abs); statErr == nil && info.Size() > 0 && version == 0 {
		return nil, fmt.Errorf("%s is no index of recordings: move it away", path)
	}
	if err := os.Remove(abs); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if f, _, err = open(); err != nil {
		return nil, fmt.Errorf("the index %s: %w", path, err)
	}
	for _, s := range append([]string{"PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF"},
		append(statements(schema), fmt.Sprintf("PRAGMA user_version=%d", schemaVersion))...) {
		if _, err := f.db.Exec(s); err != nil {
			f.Close()
			return nil, fmt.Errorf("the index %s: %w", path, err)
		}
	}
	return f, nil
}

// own reports whether a file is a regular one of this user, and of no other name: SQLite follows links.
func own(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && int(st.Uid) == os.Geteuid() && st.Nlink == 1
}

// tables are those that have rows of a file.
var tables = []string{
	"host_row", "address_row", "call_row", "minute_row", "incident_row", "finding_row", "change_row", "edge_row",
}

// update adds the rows of recordings that are new or changed, and removes those of others.
func (f *Folder) update(ctx context.Context, o FolderOptions, paths []found) error {
	known := map[string]found{}
	rows, err := f.db.Query("SELECT path, bytes, changed_ns FROM file")
	if err != nil {
		return err
	}
	for rows.Next() {
		var k found
		if err := rows.Scan(&k.path, &k.bytes, &k.changedNs); err != nil {
			rows.Close()
			return err
		}
		known[k.path] = k
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	var missing []found
	for _, p := range paths {
		if known[p.path] != p {
			missing = append(missing, p)
		} else {
			delete(known, p.path)
		}
	}
	for path, was := range known {
		info, err := os.Lstat(path)
		if o.Keep && err == nil && (found{path, info.Size(), info.ModTime().UnixNano()}) == was {
			continue
		}
		if err := f.forget(path); err != nil {
			return err
		}
	}
	for i, p := range missing {
		if err := ctx.Err(); err != nil {
			return err
		}
		o.Show("judging recording %d of %d: %s", i+1, len(missing), filepath.Base(p.path))
		if err := f.add(o, p); err != nil {
			return err
		}
	}
	return f.nameNodes()
}

func (f *Folder) forget(path string) error {
	for _, t := range tables {
		_, err := f.db.Exec("DELETE FROM "+t+" WHERE file = (SELECT id FROM file WHERE path = ?)", path)
		if err != nil {
			return err
		}
	}
	_, err := f.db.Exec("DELETE FROM file WHERE path = ?", path)
	return err
}

// add adds the rows of a recording. What cannot be read is kept as a file without rows.
func (f *Folder) add(o FolderOptions, p found) error {
	all, failed := rows{}, ""
	rec, err := recording.Reading{ToJudge: true}.Open(p.path)
	if err != nil {
		failed = err.Error()
		o.Say(fmt.Sprintf("%s is left out: %v", p.path, err))
	} else {
		if rec.Damage != "" {
			o.Say(fmt.Sprintf("%s: %s: what can be read of it is asked", p.path, rec.Damage))
		}
		c, left := facts.New(rec), 0
		all, left = rowsOf(originOf(p.path, rec), c, diagnosisOf(p.path, c, o.Version))
		if left > 0 {
			o.Say(fmt.Sprintf("%s: of its slow calls the slowest %d are asked, and %d are not", p.path, maxCalls, left))
		}
	}
	tx, err := f.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	res, err := tx.Exec("INSERT INTO file(path, bytes, changed_ns, failed) VALUES(?,?,?,?)", p.path, p.bytes,
		p.changedNs, failed)
	if err != nil {
		return err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err
	}
	for table, ofTable := range all {
		insert, err := tx.Prepare("INSERT INTO " + table + " VALUES(?" + strings.Repeat(",?", len(ofTable[0])) + ")")
		if err != nil {
			return err
		}
		for _, row := range ofTable {
			if _, err := insert.Exec(append([]any{id}, row...)...); err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}

// diagnosisOf is the diagnosis beside a recording, as the agent keeps it, or else one that is made now.
func diagnosisOf(path string, c *facts.Case, version string) (d verdict.Diagnosis) {
	if filepath.Base(path) == "recording.slowpath" {
		doc, err := hostfs.ReadRegular(hostfs.Root{}, filepath.Join(filepath.Dir(path), "diagnosis.json"), maxDiagnosis)
		if err == nil && json.Unmarshal(doc, &d) == nil && d.Schema == verdict.Schema {
			return d
		}
	}
	return verdict.Of(c, version)
}
