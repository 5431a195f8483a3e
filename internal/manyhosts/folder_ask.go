package manyhosts

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// sameNodes are the names of nodes at their own host, such as those of its loopback device, with the names that callers
// use: the ends of the same calls say which are the same, and the addresses that one host alone has.
const sameNodes = `SELECT s.cluster, s.node, min(c.node) FROM call s
	JOIN call c ON c.cluster = s.cluster AND c.trace = s.trace AND c.side = 'client'
	WHERE s.side = 'server' AND s.node <> c.node GROUP BY s.cluster, s.node
UNION
SELECT a.cluster, s.node, min(c.node)
FROM (SELECT cluster, ip, min(host) AS host FROM address_row GROUP BY cluster, ip HAVING count(DISTINCT host) = 1) a
JOIN minute_row c ON c.cluster = a.cluster AND c.host <> a.host AND rtrim(c.node, '0123456789') IN (a.ip || ':',
	'[' || a.ip || ']:')
JOIN minute_row s ON s.cluster = a.cluster AND s.host = a.host AND s.node IN (
	a.host || ' 127.0.0.1:' || replace(c.node, rtrim(c.node, '0123456789'), ''),
	a.host || ' [::1]:' || replace(c.node, rtrim(c.node, '0123456789'), ''))
GROUP BY a.cluster, s.node`

// nameNodes gives nodes of a cluster one name each.
func (f *Folder) nameNodes() error {
	rows, err := f.db.Query(sameNodes)
	if err != nil {
		return err
	}
	type name struct{ cluster, from, to string }
	var names []name
	for rows.Next() {
		var n name
		if err := rows.Scan(&n.cluster, &n.from, &n.to); err != nil {
			rows.Close()
			return err
		}
		names = append(names, n)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, n := range names {
		for _, table := range []string{"call_row", "minute_row", "change_row", "edge_row"} {
			_, err := f.db.Exec("UPDATE "+table+" SET node = ? WHERE node = ? AND cluster = ?", n.to, n.from, n.cluster)
			if err != nil {
				return err
			}
		}
		for _, table := range []string{"incident_row", "finding_row"} {
			_, err := f.db.Exec("UPDATE "+table+" SET nodes = replace(nodes, ?, ?) WHERE cluster = ?", jsonOf(n.from),
				jsonOf(n.to), n.cluster)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Query implements Source.
func (f *Folder) Query(ctx context.Context, query string, filter Filter) (out Rows, err error) {
	all := filter.Parameters()
	var args []any
	for _, name := range used(query) {
		args = append(args, sql.Named(name, all[name]))
	}
	rows, err := f.db.QueryContext(ctx, parameter.ReplaceAllString(query, ":$1"), args...)
	if err != nil {
		return out, err
	}
	defer rows.Close()
	if out.Columns, err = rows.Columns(); err != nil {
		return out, err
	}
	for rows.Next() {
		row := make([]any, len(out.Columns))
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return out, err
		}
		out.Values = append(out.Values, row)
	}
	return out, rows.Err()
}

// Span implements Source.
func (f *Folder) Span(ctx context.Context) (from, to time.Time, err error) {
	if !f.to.IsZero() {
		return f.from, f.to, nil
	}
	var first, last sql.NullInt64
	err = f.db.QueryRowContext(ctx, "SELECT min(at_ns), max(at_ns + ns) FROM incident").Scan(&first, &last)
	if err == nil && !first.Valid {
		err = ErrNoRecordings
	}
	return time.Unix(0, first.Int64).Truncate(time.Minute), time.Unix(0, last.Int64+1), err
}

// MaxJudged is how many recordings are judged together, at most.
const MaxJudged = 64

// Recordings are the recordings of an incident: its own first, then those of other hosts that saw the same calls,
// whatever their clocks say, with most of them first, and then those that saw other slow calls of these hosts, or the
// same nodes at that time. Of more than MaxJudged the others are left out.
func (f *Folder) Recordings(ctx context.Context, id string) (paths, left []string, err error) {
	rows, err := f.db.QueryContext(ctx, `
		WITH it AS (SELECT * FROM incident_row WHERE id = ?1 OR host || '/' || id = ?1),
		same AS (
			SELECT a.file AS file, count(*) AS calls FROM it JOIN call_row b ON b.file = it.file
			JOIN call_row a ON a.trace = b.trace AND a.cluster = b.cluster AND a.host <> b.host GROUP BY a.file),
		related AS (
			SELECT file, 2 AS near, 0 AS calls FROM it
			UNION ALL
			SELECT file, 1, calls FROM same
			UNION ALL
			SELECT a.file, 0, count(*) FROM (SELECT file FROM same ORDER BY calls DESC LIMIT ?2) s
			JOIN call_row b ON b.file = s.file
			JOIN call_row a ON a.trace = b.trace AND a.cluster = b.cluster AND a.host <> b.host GROUP BY a.file
			UNION ALL
			SELECT o.file, 0, 0 FROM it JOIN incident_row o ON o.cluster = it.cluster AND o.host <> it.host
				AND o.at_ns < it.at_ns + it.ns AND it.at_ns < o.at_ns + o.ns
			WHERE EXISTS (SELECT 1 FROM json_each(o.nodes) a JOIN json_each(it.nodes) b ON a.value = b.value))
		SELECT p.path FROM related r JOIN file p ON p.id = r.file
		GROUP BY p.path ORDER BY max(r.near) DESC, max(r.calls) DESC, p.path`, id, MaxJudged)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var path string
		if err := rows.Scan(&path); err != nil {
			return nil, nil, err
		}
		paths = append(paths, path)
	}
	n := min(len(paths), MaxJudged)
	return paths[:n], paths[n:], rows.Err()
}

// Close implements Source.
func (f *Folder) Close() error { return f.db.Close() }
