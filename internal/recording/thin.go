package recording

import "fmt"

// thin keeps the file below its limit: above it, every second row of the older half of conn_use is deleted (then of
// sample, of histogram, of call) until a quarter of the limit is free. Later rounds thin the oldest rows again, so that
// detail decreases with age. Events and snapshots stay: they are small, and verdicts rest on them.
func (w *Writer) thin() error {
	used, err := w.usedBytes()
	if err != nil || used <= w.maxDisk {
		return err
	}
	for used > w.maxDisk/4*3 {
		freed, err := w.thinOnce()
		if err != nil {
			return fmt.Errorf("thinning recording %s: %w", w.path, err)
		}
		if !freed {
			return fmt.Errorf("recording %s has reached its limit of %d bytes; give a larger --max-disk", w.path,
				w.maxDisk)
		}
		if used, err = w.usedBytes(); err != nil {
			return err
		}
	}
	return nil
}

// usedBytes is the size of the pages in use. SQLite reuses freed pages before the file grows.
func (w *Writer) usedBytes() (int64, error) {
	var pages, free, size int64
	if err := w.db.QueryRow("SELECT p.page_count, f.freelist_count, s.page_size FROM pragma_page_count p, "+
		"pragma_freelist_count f, pragma_page_size s").
		Scan(&pages, &free, &size); err != nil {
		return 0, fmt.Errorf("size of recording %s: %w", w.path, err)
	}
	return (pages - free) * size, nil
}

// minThinRows is how many rows a table must have to be thinned.
const minThinRows = 1000

func (w *Writer) thinOnce() (bool, error) {
	for _, table := range []string{"conn_use", "sample", "histogram", "call"} {
		var rows int64
		if err := w.db.QueryRow("SELECT count(*) FROM " + table).Scan(&rows); err != nil {
			return false, err
		}
		if rows < minThinRows {
			continue
		}
		// By row number and not by rowid: rowids have gaps after the first round.
		q := fmt.Sprintf("DELETE FROM %[1]s WHERE rowid IN (SELECT rowid FROM (SELECT rowid, row_number() OVER "+
			"(ORDER BY rowid) AS place FROM %[1]s) WHERE place %% 2 = 0 AND place <= %[2]d)", table, rows/2)
		for _, q := range []string{q, "DELETE FROM segment WHERE call_id NOT IN (SELECT id FROM call)", "VACUUM"} {
			result, err := w.db.Exec(q)
			if err != nil {
				return false, err
			}
			if n, err := result.RowsAffected(); err == nil && q != "VACUUM" {
				w.thinned += n
			}
		}
		return true, nil
	}
	return false, nil
}
