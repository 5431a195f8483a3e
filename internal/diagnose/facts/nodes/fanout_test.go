package nodes

import (
	"testing"

	"slowpath/internal/recording"
)

// FuzzFanoutShare: whatever samples say, the share of a fan-out is between 0 and 1.
func FuzzFanoutShare(f *testing.F) {
	f.Add(int64(40e6), int64(1e4), int64(3e5), false)
	f.Add(int64(1), int64(-1), int64(0), true)
	f.Fuzz(func(t *testing.T, waited, after, took int64, waiting bool) {
		if waited <= 0 || took < 0 {
			t.Skip()
		}
		o := Fanout{Nodes: map[string]int{}}
		for range 10 {
			o.take(fanoutSample{recording.OtherNodesDetail{Others: []recording.OtherNodeCall{{
				Node: "a", SentAfterNs: after, TookNs: took,
				Waiting: waiting,
			}}}, waited})
		}
		if s := o.Share(); !(s >= 0 && s <= 1) {
			t.Errorf("share %v of %+v", s, o)
		}
	})
}
