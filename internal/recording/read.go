package recording

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"slowpath/internal/format"
)

// Bounds of what is read of a recording, which anybody can have written.
const (
	// maxRows bounds what Open reads into memory per table; a recording at the default --max-disk stays below.
	maxRows = 20_000_000
	// maxMeta is the number of rows of meta.
	maxMeta = 10_000
	// maxValue is the size of one value in bytes.
	maxValue = 64 << 20
	// maxSpan is how long a recording lasts; its rows may be as much older: LATENCY HISTORY goes far back.
	// late is how long after its end they may be: clocks of two hosts differ.
	maxSpan = 366 * 24 * time.Hour
	late    = 24 * time.Hour
	// maxTimeNs is the last time in nanoseconds since the epoch, in the year 2116: sums of two do not overflow.
	maxTimeNs = int64(math.MaxInt64 / 2)
	// jitterNs is by how many nanoseconds an end may be before its begin: clocks of two CPUs differ.
	jitterNs = int64(time.Millisecond)
)

// reader reads the tables of a recording. Of a damaged one it reads what SQLite still finds.
type reader struct {
	db      *sql.DB
	rec     *Recording
	shared  map[string]string // texts of many rows, once each
	damaged []string          // tables of which a part is missing
	damage  error             // the first error of these
	refused int               // rows with columns that no source writes
	loNs    int64             // the times of its rows are from here
	hiNs    int64             // to here
	only    *selection        // what is read of a large recording; nil: all

	progress func(share float64) // nil: nobody wants to know
	rows     int64               // of all tables, about
	before   int64               // rows of the tables that were read, about
}

// allRows is how many rows there are, about: what is damaged has none.
func (x *reader) allRows() (n int64) {
	for _, t := range []*table{
		callTable, segmentTable, histogramTable, sampleTable, connUseTable, eventTable, snapshotTable, profileTable,
	} {
		last, _ := x.lastRow(t)
		n += max(0, min(last, maxRows))
	}
	return n
}

// atRow says how far it is now and then: at the nth row that is read of a table.
func (x *reader) atRow(n int, id int64) {
	const apart = 1 << 12
	if x.progress != nil && x.rows > 0 && n%apart == 0 {
		x.progress(min(1, float64(x.before+max(0, id))/float64(x.rows)))
	}
}

// limit takes the times that rows may have from meta. An end that cannot be is as good as none.
func (x *reader) limit() error {
	x.loNs, x.hiNs = 0, maxTimeNs
	if x.rec.Meta[MetaStart] == "" { // nothing was watched
		return nil
	}
	start, err := strconv.ParseInt(x.rec.Meta[MetaStart], 10, 64)
	if err != nil || start <= 0 || start > maxTimeNs {
		return fmt.Errorf("its %s is no time", MetaStart)
	}
	last := start + int64(maxSpan)
	if text, ok := x.rec.Meta[MetaEnd]; ok {
		if end, err := strconv.ParseInt(text, 10, 64); err == nil && start <= end && end <= last {
			last = end
		} else {
			x.refused++
			delete(x.rec.Meta, MetaEnd)
		}
	}
	x.loNs, x.hiNs = start-int64(maxSpan), last+int64(late)
	return nil
}

// within reports whether [fromNs, toNs] is a time of the recording.
func (x *reader) within(fromNs, toNs int64) bool {
	return x.loNs <= fromNs && fromNs <= x.hiNs && x.loNs <= toNs && toNs <= x.hiNs &&
		toNs-fromNs >= -jitterNs && toNs-fromNs <= int64(maxSpan)
}

// lasting is within, of something that began and took this long.
func (x *reader) lasting(fromNs, ns int64) bool {
	return ns >= -jitterNs && ns <= int64(maxSpan) && fromNs <= x.hiNs && x.within(fromNs, fromNs+ns)
}

// read reads columns of the rows of a table in their order. For each row add is called with a function that scans it,
// and says whether its columns are what a source writes.
func (x *reader) read(t *table, columns string, add func(scan func(...any) error) bool) error {
	last, n := int64(math.MinInt64), 0
	row := func(rows *sql.Rows) error {
		var id int64
		if n++; n > maxRows {
			return fmt.Errorf("more than %d rows in %s", maxRows, t.name)
		}
		known := add(func(into ...any) error {
			err := rows.Scan(append([]any{&id}, into...)...)
			if err == nil && id <= last {
				err = errCircle
			}
			return err
		})
		switch {
		case known:
			last = id
			x.atRow(n, id)
		case id != 0 && id <= last:
			return errCircle
		default:
			x.refused++
		}
		return nil
	}
	// No index is used: it could have other rows than the table.
	from := t.name + " NOT INDEXED"
	if where := x.where(t); where != "" {
		from += " WHERE " + where
	}
	err := each(x.db, "SELECT rowid,"+columns+" FROM "+from+" ORDER BY rowid", row)
	if last > 0 {
		x.before += min(last, maxRows)
	}
	if err == nil || !isDamage(err) {
		return err
	}
	x.damaged = append(x.damaged, t.name)
	if x.damage == nil {
		x.damage = err
	}
	return nil
}

// errCircle is that of pages that come twice.
var errCircle = errors.New("its rows are not in order")

// isDamage reports whether a part of the file is missing or wrong, and other parts may not be.
func isDamage(err error) bool {
	var known *sqlite.Error
	if !errors.As(err, &known) {
		return errors.Is(err, errCircle)
	}
	switch known.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_NOTADB:
		return true
	}
	return false
}

// note adds to the recording what is missing of it.
func (x *reader) note(path string) {
	if len(x.damaged) > 0 {
		slices.Sort(x.damaged)
		why := fmt.Sprintf("the file is damaged (%v)", x.damage)
		if head, size, err := header(path); err == nil && size < wholeSize(head) {
			why = fmt.Sprintf("the file is cut short: %s of %s are there", format.Bytes(size),
				format.Bytes(wholeSize(head)))
		}
		x.spot("a part of the recording (tables "+strings.Join(x.damaged, ", ")+")", why,
			"copy it again from where it was made")
	}
	if x.refused > 0 && len(x.damaged) == 0 { // else they are a part of the damage
		x.spot(format.Count(x.refused, "row")+" of the recording",
			"their times are not of this recording, or a column has another type", "make it again")
	}
}

func (x *reader) spot(what, why, enable string) {
	_, end := x.rec.Window()
	if x.rec.Damage == "" {
		x.rec.Damage = what + " cannot be read: " + why + "; " + enable
	}
	x.rec.Events = append(x.rec.Events, Event{
		TimeNs: end, Source: SourceRecording, Subject: SubjectSelf, Kind: KindBlindSpot,
		Detail: Detail(BlindSpot{What: what, Why: why, Enable: enable}),
	})
}

func (x *reader) readMeta() error {
	n := 0
	err := each(x.db, "SELECT key, value FROM meta NOT INDEXED", func(rows *sql.Rows) error {
		var k, v string
		if n++; n > maxMeta {
			return fmt.Errorf("more than %d rows in meta", maxMeta)
		}
		if err := rows.Scan(&k, &v); err != nil {
			x.refused++
			return nil
		}
		x.rec.Meta[k] = v
		return nil
	})
	if err != nil && isDamage(err) && x.rec.Meta[MetaSchema] != "" {
		x.damaged, x.damage = append(x.damaged, "meta"), err
		return nil
	}
	return err
}

func (x *reader) readCalls() error {
	columns := "id,source,conn,op,key_hash,arg_count,request_bytes,reply_bytes,intended_ns,start_ns,end_ns," +
		"node,slot,error"
	switch x.rec.Meta[MetaSchema] {
	case "1":
		columns += ",'','',0 " // side and client came with version 2
	case "2":
		columns += ",side,client,0 " // seq came with version 3
	default:
		columns += ",side,client,seq "
	}
	var c Call
	return x.read(callTable, columns, func(scan func(...any) error) bool {
		err := scan(&c.ID, &c.Source, &c.Conn, &c.Op, &c.KeyHash, &c.ArgCount, &c.RequestBytes, &c.ReplyBytes,
			&c.IntendedNs, &c.StartNs, &c.EndNs, &c.Node, &c.Slot, &c.Error, &c.Side, &c.Client, &c.Seq)
		if err != nil || !x.within(c.IntendedNs, c.EndNs) || !x.within(min(c.StartNs, c.EndNs), c.EndNs) {
			return false
		}
		x.share(&c.Source, &c.Conn, &c.Op, &c.Node, &c.Error, &c.Side, &c.Client)
		x.rec.Calls = append(x.rec.Calls, c)
		return true
	})
}

func (x *reader) readSegments() error {
	var s Segment
	if x.only != nil {
		x.only.markRead(x.rec.Calls)
	}
	return x.read(segmentTable, columnsOf(segmentTable), func(scan func(...any) error) bool {
		err := scan(&s.CallID, &s.Actor, &s.State, &s.FromNs, &s.ToNs, &s.Culprit)
		if err != nil || !x.within(s.FromNs, s.ToNs) {
			return false
		}
		if x.only.reads(s.CallID) {
			x.rec.addSegment(s.CallID, s)
		}
		return true
	})
}

func (x *reader) readHistograms() error {
	return x.read(histogramTable, columnsOf(histogramTable), func(scan func(...any) error) bool {
		var h Histogram
		var hdr sql.RawBytes
		err := scan(&h.Second, &h.Source, &h.Node, &h.Op, &hdr)
		if err != nil || h.Second < x.loNs/1e9 || h.Second > x.hiNs/1e9 {
			return false
		}
		x.share(&h.Source, &h.Node, &h.Op)
		if h.HDR = hdr; !x.only.sums(h) {
			h.HDR = bytes.Clone(hdr)
			x.rec.Histogram(h)
			return true
		}
		last := len(x.rec.Histograms) - 1
		if last < 0 || x.rec.Histograms[last].Second != h.Second || x.rec.Histograms[last].Source != h.Source ||
			x.rec.Histograms[last].Node != h.Node { // when calls were counted is kept
			h.HDR = nil
			x.rec.Histograms = append(x.rec.Histograms, h)
		}
		return true
	})
}

func (x *reader) readSamples() error {
	var s Sample
	return x.read(sampleTable, columnsOf(sampleTable), func(scan func(...any) error) bool {
		err := scan(&s.TimeNs, &s.Source, &s.Subject, &s.Name, &s.Value)
		if err != nil || !x.within(s.TimeNs, s.TimeNs) || math.IsInf(s.Value, 0) || math.IsNaN(s.Value) {
			return false
		}
		x.rec.addSample(s)
		return true
	})
}

func (x *reader) readConnUses() error {
	switch x.rec.Meta[MetaSchema] {
	case "1", "2", "3":
		return nil
	case "4":
		return x.readConnUsesOf4()
	}
	var client string
	var u ConnUse
	var packed sql.RawBytes
	return x.read(connUseTable, columnsOf(connUseTable), func(scan func(...any) error) bool {
		err := scan(&u.TimeNs, &client, &packed)
		if err != nil || !x.within(u.TimeNs, u.TimeNs) || !u.unpack(packed) || !u.valid() {
			return false
		}
		x.rec.ConnUse(client, u)
		return true
	})
}

// readConnUsesOf4 reads those of version 4 of the schema, which had a column for each number.
func (x *reader) readConnUsesOf4() error {
	const columns = "time_ns,client,calls,in_flight_ns,idle_ns,prompt,turns,handed,waited_ns,waited_max_ns,kept_ns," +
		"served"
	var client string
	u := ConnUse{IdleMaxNs: -1}
	numbers := u.numbers()
	into := []any{numbers[0], &client}
	for _, v := range numbers[1 : len(numbers)-1] {
		into = append(into, v)
	}
	return x.read(connUseTable, columns, func(scan func(...any) error) bool {
		if err := scan(into...); err != nil || !x.within(u.TimeNs, u.TimeNs) || !u.valid() {
			return false
		}
		x.rec.ConnUse(client, u)
		return true
	})
}

// share has equal texts of many rows use the same memory.
func (x *reader) share(texts ...*string) {
	for _, t := range texts {
		one, known := x.shared[*t]
		if !known {
			one = *t
			x.shared[one] = one
		}
		*t = one
	}
}

func (x *reader) readEvents() error {
	var e Event
	nth := uint64(0)
	return x.read(eventTable, columnsOf(eventTable), func(scan func(...any) error) bool {
		err := scan(&e.TimeNs, &e.DurationNs, &e.Source, &e.Subject, &e.Kind, &e.Detail)
		if err != nil || !x.lasting(e.TimeNs, e.DurationNs) {
			return false
		}
		if nth++; !x.only.takes(&e, nth) {
			return true
		}
		x.share(&e.Source, &e.Subject, &e.Kind)
		if x.rec.packed != nil && e.Source == SourceTap && ofConns(e.Kind) {
			x.rec.packed.add(e)
		} else {
			x.rec.Event(e)
		}
		return true
	})
}

func (x *reader) readSnapshots() error {
	var s Snapshot
	return x.read(snapshotTable, columnsOf(snapshotTable), func(scan func(...any) error) bool {
		err := scan(&s.TimeNs, &s.Source, &s.Subject, &s.Name, &s.Body)
		if err != nil || !x.within(s.TimeNs, s.TimeNs) {
			return false
		}
		x.share(&s.Source, &s.Subject, &s.Name, &s.Body)
		x.rec.Snapshot(s)
		return true
	})
}

func (x *reader) readProfiles() error {
	return x.read(profileTable, columnsOf(profileTable), func(scan func(...any) error) bool {
		var p Profile
		err := scan(&p.TimeNs, &p.Subject, &p.Kind, &p.Pprof)
		if err != nil || !x.within(p.TimeNs, p.TimeNs) {
			return false
		}
		x.rec.Profiles = append(x.rec.Profiles, p)
		return true
	})
}

func columnsOf(t *table) string { return strings.Join(t.columns, ",") }
