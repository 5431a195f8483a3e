package otlp

import (
	"context"
	"encoding/json"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"slowpath/internal/agent/folder"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/live"
)

// Disk is what is sent from the files of the agent: what a collector did not take is sent once it does, as long as the
// files have it.
type Disk struct {
	Store   *incidents.Store
	History *incidents.History
	Folder  *folder.Folder // for the cursor
	// Calls gives the slow calls that ended in a time, and how many more there were; First is the begin of the first
	// time of which they are kept. nil: they are not kept.
	Calls func(ctx context.Context, from, to time.Time) (calls []live.SlowCall, missed uint64, err error)
	First func() time.Time
}

// Bounds of what is sent from disk.
const (
	cursorFile      = "otlp.json"
	maxCursor       = 4 << 10 // bytes
	incidentsAtOnce = 10
	entriesAtOnce   = 200
	minutesAtOnce   = 60 // minutes of the clock
	// settled is how long after its end a minute is final: an agent that was started again adds to it.
	settled = 20 * time.Second
)

// cursor says up to where all was sent to a collector.
type cursor struct {
	Collector string    `json:"collector"`
	Calls     time.Time `json:"calls"`     // that ended before
	Incidents time.Time `json:"incidents"` // the last change of one
	Minute    int64     `json:"minute"`    // the Unix second in which the next one begins
	Entries   int64     `json:"entries"`   // the number of the last one
}

// readCursor reads the cursor. Where there is none for this collector it begins now, and never before the minutes that
// are kept by default.
func (e *Exporter) readCursor() {
	now := time.Now().UTC()
	doc, err := e.o.Disk.Folder.Read(cursorFile, maxCursor)
	var c cursor
	if err != nil || json.Unmarshal(doc, &c) != nil || c.Collector != e.o.Endpoint.String() {
		c = cursor{Collector: e.o.Endpoint.String(), Calls: now, Incidents: now, Minute: now.Unix() / 60 * 60}
	}
	if c.Entries == 0 { // it was written by a version without entries, or now
		c.Entries = now.UnixNano() - 1
	}
	c.Minute = max(c.Minute, now.Add(-incidents.DefaultKeepHistory).Unix()) / 60 * 60
	e.cursor = c
}

func (e *Exporter) writeCursor() {
	doc, err := json.Marshal(e.cursor)
	if err == nil {
		err = e.o.Disk.Folder.Replace(cursorFile, append(doc, '\n'))
	}
	if err != nil {
		e.o.Log("otlp: how far all was sent cannot be kept, so that some of it may be sent twice: " + text(err.Error()))
	}
}

// sendDisk sends until all is sent, or until the collector does not take it.
func (e *Exporter) sendDisk(ctx context.Context) {
	for ctx.Err() == nil && !e.events.Rests() && e.sendIncidents(ctx) {
	}
	for ctx.Err() == nil && !e.events.Rests() && e.sendEntries(ctx) {
	}
	for ctx.Err() == nil && !e.minutes.Rests() && e.sendMinutes(ctx) {
	}
}

// sendIncidents sends some incidents that were changed, and reports whether there may be more.
func (e *Exporter) sendIncidents(ctx context.Context) bool {
	changed := e.o.Disk.Store.ChangedSince(e.cursor.Incidents, incidentsAtOnce)
	if len(changed) == 0 {
		return false
	}
	into := e.newEvents()
	for _, in := range changed {
		diagnosis, _ := e.o.Disk.Store.Diagnosis(in.ID) // none until it is judged
		into.incident(in, diagnosis)
	}
	if !e.events.Send(len(into.records), func() error { return e.logs.Export(ctx, into.records) }) {
		return false
	}
	e.cursor.Incidents = changed[len(changed)-1].Changed
	e.writeCursor()
	return len(changed) == incidentsAtOnce
}

// sendEntries sends some edges and changes, and reports whether there may be more.
func (e *Exporter) sendEntries(ctx context.Context) bool {
	all, err := e.o.Disk.History.EntriesAfter(e.cursor.Entries, entriesAtOnce)
	if err != nil || len(all) == 0 {
		return false // the agent says that its history cannot be read
	}
	into := e.newEvents()
	for _, one := range all {
		into.entry(one)
	}
	if len(into.records) > 0 &&
		!e.events.Send(len(into.records), func() error { return e.logs.Export(ctx, into.records) }) {
		return false
	}
	e.cursor.Entries = all[len(all)-1].At
	e.writeCursor()
	return len(all) == entriesAtOnce
}

// sendMinutes sends some minutes, and reports whether there may be more.
func (e *Exporter) sendMinutes(ctx context.Context) bool {
	final := time.Now().Add(-settled).Unix() / 60 * 60
	to := min(e.cursor.Minute+60*minutesAtOnce, final)
	if to <= e.cursor.Minute {
		return false
	}
	rows, err := e.o.Disk.History.Minutes(e.cursor.Minute, to)
	if err != nil {
		return false // the agent says that its history cannot be read
	}
	if len(rows) > 0 {
		data := metricdata.ResourceMetrics{Resource: e.from, ScopeMetrics: e.minuteMetrics(rows)}
		if !e.minutes.Send(len(rows), func() error { return e.rows.Export(ctx, &data) }) {
			return false
		}
	}
	e.cursor.Minute = to
	if len(rows) > 0 || to == final {
		e.writeCursor()
	}
	return to < final
}
