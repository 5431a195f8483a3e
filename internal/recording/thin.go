package recording

import (
	"cmp"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
)

// How a file stays below its limit, maxDisk: before rows are written, the class of rows that takes the most space is
// thinned in the older half of its table until there is room. Half of its rows are deleted, and every round halves the
// oldest again, so that detail decreases with age. Of slow calls the slowest stay, of other rows those that overlap a
// slow call; a deleted histogram is added to the one before it. What is rare is never thinned.
//
// Rows are deleted with all their neighbours, and those that stay are written again: only pages that have become empty
// are used again by SQLite, and a VACUUM would need the whole file's size a second time.

// round is one pass of thinning over the older part of a table.
type round struct {
	at, until int64      // rowids: what it has looked at, and where it ends
	deleted   int64      // rows
	whole     bool       // the round before found nothing: this one covers the whole table
	useless   bool       // nor did this one: until more rows come
	slow      [][2]int64 // when calls were slow: begin and end, ordered and disjoint
}

// maxSlowSpans bounds the memory for round.slow; of more slow calls the first ones protect what overlaps them.
const maxSlowSpans = 100_000

// thinOnce thins one block of rows. False: there is nothing to be thinned.
func (w *Writer) thinOnce() (bool, error) {
	for {
		if r := w.rounds[segmentTable]; r != nil && r.at < r.until {
			return true, w.thinBlock(segmentTable, r, 0)
		}
		heaviest, share := w.heaviest()
		if heaviest == nil {
			return false, nil
		}
		t := heaviest.into
		if r := w.rounds[t]; r != nil && r.at < r.until {
			return true, w.thinBlock(t, r, share/2)
		}
		if err := w.nextRound(t); err != nil {
			return false, err
		}
	}
}

// heaviest is the class with the most bytes for its rank, in a table where something is left to be thinned.
func (w *Writer) heaviest() (most *class, share float64) {
	w.classes.mu.Lock()
	defer w.classes.mu.Unlock()
	for _, c := range w.classes.all {
		if r := w.rounds[c.into]; c.rows < 2 || c.into == segmentTable || r != nil && r.useless {
			continue
		}
		s := w.classes.share(c)
		if most == nil || s > share || s == share && c.name < most.name {
			most, share = c, s
		}
	}
	return most, share
}

// nextRound begins a round over the older half of a table, or over all of it if the last one found nothing.
func (w *Writer) nextRound(t *table) error {
	last := w.rounds[t]
	r := &round{at: -1}
	w.rounds[t] = r
	if t == callTable && last != nil && last.deleted > 0 {
		w.rounds[segmentTable] = &round{at: -1, until: math.MaxInt64} // deletes those of the deleted calls
	}
	if last != nil && last.deleted == 0 {
		if r.whole, r.useless = true, last.whole; r.useless {
			return nil
		}
	}
	middle := "(SELECT count(*) / 2 FROM " + t.name + ")"
	if r.whole {
		middle = "(SELECT count(*) - 1 FROM " + t.name + ")"
	}
	err := w.db.QueryRow("SELECT rowid FROM " + t.name + " ORDER BY rowid LIMIT 1 OFFSET " + middle).Scan(&r.until)
	if err != nil && err != sql.ErrNoRows {
		return err
	}
	if t != eventTable {
		return nil
	}
	return each(w.db, fmt.Sprintf("SELECT intended_ns, end_ns FROM call WHERE end_ns - intended_ns >= %d "+
		"ORDER BY intended_ns", w.classes.slowNs), func(rows *sql.Rows) error {
		var from, to int64
		if err := rows.Scan(&from, &to); err != nil {
			return err
		}
		if n := len(r.slow); n > 0 && from <= r.slow[n-1][1] {
			r.slow[n-1][1] = max(r.slow[n-1][1], to)
		} else if n < maxSlowSpans {
			r.slow = append(r.slow, [2]int64{from, to})
		}
		return nil
	})
}

// overlapsSlow reports whether an event happened while a call was slow.
func (r *round) overlapsSlow(event []any) bool {
	from := number(event[0])
	to := from + number(event[1])
	i, _ := slices.BinarySearchFunc(r.slow, from, func(s [2]int64, ns int64) int { return cmp.Compare(s[1], ns) })
	return i < len(r.slow) && r.slow[i][0] <= to
}

// thinBlock thins the next rows of a table: of classes with at least this share.
func (w *Writer) thinBlock(t *table, r *round, share float64) error {
	tx, err := w.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	block, err := w.readBlock(tx, t, r)
	if err != nil {
		return err
	}
	if len(block) == 0 {
		r.at = r.until
		return nil
	}
	last := block[len(block)-1].id
	byClass := map[*class][]int{}
	for i, row := range block {
		byClass[row.class] = append(byClass[row.class], i)
	}
	gone := make([]bool, len(block))
	for i, row := range block {
		gone[i] = row.orphan
	}
	for c, rows := range byClass {
		if w.classes.share(c) >= share {
			choose(c, block, rows, gone, r)
		}
	}
	if err := rewrite(tx, t, block, gone); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	r.at = last
	var out []row
	for i, row := range block {
		if gone[i] {
			out = append(out, row)
		}
	}
	r.deleted += int64(len(out))
	w.classes.wrote(out, -1)
	return nil
}

// readBlock reads the next rows of a table, with their classes.
func (w *Writer) readBlock(tx *sql.Tx, t *table, r *round) ([]row, error) {
	query := "SELECT r.rowid," + strings.Join(t.columns, ",") + " FROM " + t.name + " r"
	if t == segmentTable {
		query = "SELECT r.rowid," + strings.Join(t.columns, ",") + ",call.id FROM segment r LEFT JOIN call ON " +
			"call.id = call_id"
	}
	rows, err := tx.Query(query+" WHERE r.rowid > ? AND r.rowid <= ? ORDER BY r.rowid", r.at, r.until)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var block []row
	for bytes := int64(0); bytes < w.step && rows.Next(); {
		one := row{into: t, args: make([]any, len(t.columns))}
		into := []any{&one.id}
		for i := range one.args {
			into = append(into, &one.args[i])
		}
		var call any = true
		if t == segmentTable {
			into = append(into, &call)
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		one.bytes, one.class = sizeOf(one.args), w.classes.find(t, one.args)
		one.orphan = call == nil
		bytes += one.bytes
		block = append(block, one)
	}
	return block, rows.Err()
}

// rewrite deletes the rows of a block, and writes those again that stay.
func rewrite(tx *sql.Tx, t *table, block []row, gone []bool) error {
	if !slices.Contains(gone, true) {
		return nil
	}
	first, last := block[0].id, block[len(block)-1].id
	if _, err := tx.Exec("DELETE FROM "+t.name+" WHERE rowid BETWEEN ? AND ?", first, last); err != nil {
		return err
	}
	st, err := tx.Prepare(t.insertAgain())
	if err != nil {
		return err
	}
	defer st.Close()
	for i, r := range block {
		if gone[i] {
			continue
		}
		if _, err := st.Exec(append([]any{r.id}, r.args...)...); err != nil {
			return err
		}
	}
	return nil
}
