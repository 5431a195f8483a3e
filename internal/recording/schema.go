package recording

// schema is the layout of a recording, described in docs/recording.md. It has no indexes: a recording is written once
// and read whole.
const schema = `
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS call(id INTEGER PRIMARY KEY, source TEXT, conn TEXT, op TEXT, key_hash TEXT,
  arg_count INTEGER, request_bytes INTEGER, reply_bytes INTEGER, intended_ns INTEGER, start_ns INTEGER, end_ns INTEGER,
  node TEXT, slot INTEGER, error TEXT, side TEXT, client TEXT, seq INTEGER);
CREATE TABLE IF NOT EXISTS segment(call_id INTEGER, actor TEXT, state TEXT, from_ns INTEGER,
  to_ns INTEGER, culprit TEXT);
CREATE TABLE IF NOT EXISTS histogram(second INTEGER, source TEXT, node TEXT, op TEXT, hdr BLOB);
CREATE TABLE IF NOT EXISTS sample(time_ns INTEGER, source TEXT, subject TEXT, name TEXT, value REAL);
CREATE TABLE IF NOT EXISTS conn_use(time_ns INTEGER, client TEXT, calls INTEGER, in_flight_ns INTEGER, idle_ns INTEGER,
  prompt INTEGER, turns INTEGER, handed INTEGER, waited_ns INTEGER, waited_max_ns INTEGER, kept_ns INTEGER,
  served INTEGER);
CREATE TABLE IF NOT EXISTS event(time_ns INTEGER, duration_ns INTEGER, source TEXT, subject TEXT, kind TEXT,
  detail TEXT);
CREATE TABLE IF NOT EXISTS snapshot(time_ns INTEGER, source TEXT, subject TEXT, name TEXT, body TEXT);
CREATE TABLE IF NOT EXISTS profile(time_ns INTEGER, subject TEXT, kind TEXT, pprof BLOB);
`

const (
	insertMeta      = `INSERT INTO meta(key,value) VALUES(?,?) ON CONFLICT(key) DO UPDATE SET value=excluded.value`
	insertCall      = `INSERT OR REPLACE INTO call VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	insertSegment   = `INSERT INTO segment VALUES(?,?,?,?,?,?)`
	insertHistogram = `INSERT INTO histogram VALUES(?,?,?,?,?)`
	insertSample    = `INSERT INTO sample VALUES(?,?,?,?,?)`
	insertConnUse   = `INSERT INTO conn_use VALUES(?,?,?,?,?,?,?,?,?,?,?,?)`
	insertEvent     = `INSERT INTO event VALUES(?,?,?,?,?,?)`
	insertSnapshot  = `INSERT INTO snapshot VALUES(?,?,?,?,?)`
	insertProfile   = `INSERT INTO profile VALUES(?,?,?,?)`
)

// applicationID marks a SQLite file as a slowpath recording ("slwp",
// https://www.sqlite.org/pragma.html#pragma_application_id).
const applicationID = 0x736c7770
