package ring

import (
	"testing"

	"slowpath/internal/recording"
)

// counted are the rows that a block hands on.
type counted struct {
	recording.ProfileSink
	rows int
}

func (c *counted) beginWatch()         { c.rows++ }
func (c *counted) lostRows(n int64)    { c.rows++ }
func (c *counted) add()                { c.rows++ }
func (c *counted) SetMeta(_, _ string) { c.add() }

// FuzzDecode: a block that somebody else wrote is read or refused, and takes no more memory than its size allows.
func FuzzDecode(f *testing.F) {
	e := newEncoder(100)
	e.call(recording.Call{Op: "GET", IntendedNs: 5, EndNs: 9}, []recording.Segment{{Actor: "server", ToNs: 4}})
	e.sample(recording.Sample{TimeNs: 3, Name: "n", Value: 1.5})
	e.connUse("a:1", recording.ConnUse{Calls: 7, Prompt: -1})
	e.event(recording.Event{Kind: "k", Detail: "{}"})
	e.snapshot(recording.Snapshot{Body: "b"})
	e.histogram(recording.Histogram{HDR: []byte("h")})
	e.profile(recording.Profile{Pprof: []byte("p")})
	e.meta("k", "v")
	e.watch()
	e.lost(3)
	f.Add(e.buf)
	f.Add([]byte{rowCall, 2, 2, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &counted{ProfileSink: recording.New()}
		if err := decode(b, 100, c); err == nil && len(b) > 0 && c.rows == 0 {
			r := c.ProfileSink.(*recording.Recording)
			r.Index()
		}
	})
}
