package recording

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestHostileSchema: a file that calls itself a recording, and computes its rows, is refused at once.
func TestHostileSchema(t *testing.T) {
	endless := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
	for name, change := range map[string]string{
		"a table that is a view": "DROP TABLE event; CREATE VIEW event AS " + endless +
			"i AS time_ns, 0 AS duration_ns, 'tap' AS source, '' AS subject, 'x' AS kind, '{}' AS detail FROM n",
		"another view": "CREATE VIEW more AS SELECT 1",
		"a trigger":    "CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM call; END",
		"a computed column": "DROP TABLE meta; CREATE TABLE meta(key TEXT PRIMARY KEY, " +
			"value TEXT AS (hex(zeroblob(100000000))))",
		"a virtual table": "CREATE VIRTUAL TABLE words USING fts5(text)",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.slowpath")
			w, err := Create(path, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			db, err := openDB(path, "rw")
			if err != nil {
				t.Fatal(err)
			}
			_, err = db.Exec(change)
			db.Close()
			if err != nil {
				t.Fatal(err)
			}
			opened := make(chan error, 1)
			go func() { _, err := Open(path); opened <- err }()
			select {
			case err := <-opened:
				if !errors.Is(err, ErrNotRecording) || !strings.Contains(err.Error(), "only tables") {
					t.Errorf("error %v", err)
				}
			case <-time.After(time.Minute):
				t.Error("it is read without end")
			}
		})
	}
}
