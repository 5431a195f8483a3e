// Package upload writes the agent's incidents that are over into a bucket: recording, diagnosis and the incident as
// its file has it. What the bucket did not take is sent once it does, as long as the agent has it.
package upload

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"os"
	"slices"
	"time"

	"slowpath/internal/agent/delivery"
	"slowpath/internal/agent/folder"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/bucket"
)

// Options of New.
type Options struct {
	Bucket  *bucket.Bucket
	Cluster string // the name of what this host belongs to
	Host    string // its name; empty: that of the system
	// BytesPerDay is how much is sent at most; 0: without a bound.
	BytesPerDay int64
	Store       *incidents.Store
	Folder      *folder.Folder // for what says which incidents were sent
	// Every is the time between two looks at the incidents, and after a first failure; 0: ten seconds.
	Every time.Duration
	// Log receives one line when something begins to go wrong, and when it works again.
	Log func(string)
}

// DefaultBytesPerDay is about a hundred recordings.
const DefaultBytesPerDay = 200 << 20

const (
	sentFile   = "recordings.json"
	maxSent    = 4 << 20 // bytes
	lookEvery  = 10 * time.Second
	uploadTime = 10 * time.Minute // of one incident

	// settled is how long an incident is not changed any more when it is sent. Incidents that a killed agent left are
	// judged in less time.
	settled = 3 * time.Minute
	// longest is when one is sent that goes on: its recording and its verdict are final, its end and its numbers not.
	longest = time.Hour
)

// Uploader writes into one bucket.
type Uploader struct {
	o       Options
	base    string // of keys: before the date
	host    string
	channel *delivery.Channel
	began   time.Time
	looked  time.Time // all incidents that were changed up to then are sent
	sent    map[string]bool
}

// New makes an uploader. Nothing is sent before Run.
func New(o Options) (*Uploader, error) {
	if o.Host == "" {
		var err error
		if o.Host, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("recordings: the name of this host: %w", err)
		}
	}
	u := &Uploader{
		o: o, base: "v1/cluster=" + inKey(o.Cluster) + "/", host: inKey(o.Host), began: time.Now(),
		looked: time.Time{}.Add(-1), // before incidents of earlier versions
		channel: &delivery.Channel{Options: delivery.Options{
			Name: "recordings", What: "incidents", To: o.Bucket.String(), Kept: true,
			Limit: "--recordings-bytes-per-day", Budget: delivery.Daily(float64(o.BytesPerDay)), Log: o.Log,
			Pause: o.Every,
		}},
	}
	u.readSent()
	return u, nil
}

// inKey is a name as a part of a key; "-": there is none.
func inKey(name string) string {
	if name == "" {
		return "-"
	}
	return url.PathEscape(name)
}

// sentTo is the file of what was sent.
type sentTo struct {
	To        string   `json:"to"`
	Incidents []string `json:"incidents"`
}

// readSent reads which incidents were sent to this bucket. Without it, all are sent: the bucket keeps those it has.
func (u *Uploader) readSent() {
	u.sent = map[string]bool{}
	var s sentTo
	text, err := u.o.Folder.Read(sentFile, maxSent)
	if err == nil && json.Unmarshal(text, &s) == nil && s.To == u.o.Bucket.String()+u.base {
		for _, id := range s.Incidents {
			u.sent[id] = true
		}
	}
}

// keepSent keeps that an incident was sent, as long as the store has it.
func (u *Uploader) keepSent(id string) {
	u.sent[id] = true
	maps.DeleteFunc(u.sent, func(id string, _ bool) bool {
		_, there := u.o.Store.Get(id)
		return !there
	})
	text, err := json.Marshal(sentTo{u.o.Bucket.String() + u.base, slices.Sorted(maps.Keys(u.sent))})
	if err == nil {
		err = u.o.Folder.Replace(sentFile, append(text, '\n'))
	}
	if err != nil {
		u.o.Log("recordings: which were sent cannot be kept, so that some may be sent twice: " + err.Error())
	}
}

// Run sends incidents until the context ends.
func (u *Uploader) Run(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(u.o.Every, lookEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			u.look(ctx)
		}
	}
}

// look sends what is ready, the oldest change first, until the bucket or the budget does not take it.
func (u *Uploader) look(ctx context.Context) {
	var ready []incidents.Incident
	waits := false
	for _, in := range u.o.Store.ChangedSince(u.looked, math.MaxInt) {
		sent := u.sent[in.ID]
		if waits = waits || !sent; !waits {
			u.looked = in.Changed
		}
		if !sent && u.ready(in) {
			ready = append(ready, in)
		}
	}
	for i, in := range ready {
		u.channel.Queued(len(ready) - i)
		if ctx.Err() != nil || u.channel.Rests() || !u.send(ctx, in) {
			return
		}
		u.keepSent(in.ID)
	}
	u.channel.Queued(0)
}

// ready reports whether an incident is as it will be in the bucket: what is there is never written again.
func (u *Uploader) ready(in incidents.Incident) bool {
	quiet := min(time.Since(in.Changed), time.Since(u.began)) >= settled
	switch in.State {
	case incidents.StateJudged:
		return quiet || time.Since(in.Start) >= longest
	case incidents.StateFailed:
		return quiet
	}
	return false
}

// object is one of an incident.
type object struct {
	name string
	io.ReaderAt
	size int64
}

// send sends an incident, and reports whether it is done with. One whose files cannot be read stays on this host.
func (u *Uploader) send(ctx context.Context, in incidents.Incident) bool {
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	objects, done, err := u.objects(in)
	defer done()
	if err != nil {
		u.channel.LeftOut(1)
		u.o.Log(fmt.Sprintf("recordings: the incident %s is not sent: %v", in.ID, err))
		return true
	}
	below := u.base + "date=" + in.Start.UTC().Format(time.DateOnly) + "/host=" + u.host + "/" + in.ID + "/"
	return u.channel.Send(1, func() error {
		for _, o := range objects {
			if err := u.o.Bucket.PutIfAbsent(ctx, below+o.name, counted{o, u.channel}, o.size); err != nil {
				return err
			}
		}
		return nil
	})
}

// objects are the recording, the diagnosis and the incident, in this order: where the last one is, all are. done closes
// what they are read from.
func (u *Uploader) objects(in incidents.Incident) (out []object, done func(), err error) {
	done = func() {}
	recording, err := u.o.Store.OpenFile(in.ID, incidents.RecordingFile)
	if err == nil {
		done = func() { recording.Close() }
		about, err := recording.Stat()
		if err != nil {
			return nil, done, err
		}
		out = append(out, object{incidents.RecordingFile, recording, about.Size()})
	} else if !errors.Is(err, fs.ErrNotExist) || in.RecordingBytes > 0 {
		return nil, done, err
	}
	diagnosis, err := u.o.Store.Diagnosis(in.ID)
	if err == nil {
		out = append(out, object{incidents.DiagnosisFile, bytes.NewReader(diagnosis), int64(len(diagnosis))})
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, done, err
	}
	about, err := in.Document()
	return append(out, object{incidents.IncidentFile, bytes.NewReader(about), int64(len(about))}), done, err
}

// counted counts what is read to be sent.
type counted struct {
	io.ReaderAt
	channel *delivery.Channel
}

// ReadAt implements io.ReaderAt.
func (c counted) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, at)
	c.channel.Wrote(n)
	return n, err
}

// Stats are the numbers since the start: incidents, and bytes.
func (u *Uploader) Stats() delivery.Stats { return u.channel.Numbers() }
