package recording

import "strings"

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
CREATE TABLE IF NOT EXISTS conn_use(time_ns INTEGER, client TEXT, numbers BLOB);
CREATE TABLE IF NOT EXISTS event(time_ns INTEGER, duration_ns INTEGER, source TEXT, subject TEXT, kind TEXT,
  detail TEXT);
CREATE TABLE IF NOT EXISTS snapshot(time_ns INTEGER, source TEXT, subject TEXT, name TEXT, body TEXT);
CREATE TABLE IF NOT EXISTS profile(time_ns INTEGER, subject TEXT, kind TEXT, pprof BLOB);
`

// table is a table of rows that a source wrote one by one: all but meta.
type table struct {
	name    string
	columns []string
}

func newTable(name, columns string) *table { return &table{name, strings.Split(columns, ",")} }

var (
	callTable = newTable("call", "id,source,conn,op,key_hash,arg_count,request_bytes,reply_bytes,intended_ns,start_ns,"+
		"end_ns,node,slot,error,side,client,seq")
	segmentTable   = newTable("segment", "call_id,actor,state,from_ns,to_ns,culprit")
	histogramTable = newTable("histogram", "second,source,node,op,hdr")
	sampleTable    = newTable("sample", "time_ns,source,subject,name,value")
	connUseTable   = newTable("conn_use", "time_ns,client,numbers")
	eventTable     = newTable("event", "time_ns,duration_ns,source,subject,kind,detail")
	snapshotTable  = newTable("snapshot", "time_ns,source,subject,name,body")
	profileTable   = newTable("profile", "time_ns,subject,kind,pprof")
)

// insert is the statement that adds a row.
func (t *table) insert() string {
	return "INSERT OR REPLACE INTO " + t.name + " VALUES(?" + strings.Repeat(",?", len(t.columns)-1) + ")"
}

// insertAgain is the statement that adds a row with the rowid that it had before.
func (t *table) insertAgain() string {
	return "INSERT OR REPLACE INTO " + t.name + "(rowid," + strings.Join(t.columns, ",") + ") VALUES(?" +
		strings.Repeat(",?", len(t.columns)) + ")"
}

const insertMeta = `INSERT INTO meta(key,value) VALUES(?,?) ON CONFLICT(key) DO UPDATE SET value=excluded.value`

// applicationID marks a SQLite file as a slowpath recording ("slwp",
// https://www.sqlite.org/pragma.html#pragma_application_id).
const applicationID = 0x736c7770
