package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

// TestMTUBlackHole: only size tells the segments that never arrive from those that do.
func TestMTUBlackHole(t *testing.T) {
	sizes := func(change func(*recording.SegmentSizesDetail)) edge {
		d := recording.SegmentSizesDetail{
			Client: "10.0.0.7", From: recording.Client, Passed: 900, PassedBytes: 133, Lost: 20, LostBytes: 1448,
			Runs: 12, BetweenRuns: 800, WaitedNs: 10e9,
		}
		change(&d)
		return newEdge("redis 7.0.15").event(recording.SourceTap, recording.KindSegmentSizes, 0, 10e9, d)
	}
	sockets := func(change func(*recording.SegmentSizesDetail)) edge {
		first := recording.SegmentSizesDetail{
			Client: "10.0.0.7", From: recording.Server, Passed: 50, PassedBytes: 90, Lost: 9, LostBytes: 1448, Runs: 1,
			WaitedNs: 4e9,
		}
		then := recording.SegmentSizesDetail{
			Client: "10.0.0.7", From: recording.Server, Passed: 500, PassedBytes: 120, Lost: 29, LostBytes: 1448,
			Runs: 4, BetweenRuns: 500, BetweenBytes: 50_000, WaitedNs: 4e9,
		}
		change(&then)
		return newEdge("redis 7.0.15").event(recording.SourceHost, recording.KindSegmentSizes, 0, 1e9, first).
			event(recording.SourceHost, recording.KindSegmentSizes, 1e9, 1e9, then)
	}
	explainEdge(t, find("packet-loss-rto"), []edgeCase{
		{
			name: "large ones are lost", rec: sizes(func(*recording.SegmentSizesDetail) {}), found: true,
			evidence: "segments of 1 448 bytes and more were sent again in vain, 20 times", fix: "fragmentation needed",
		},
		{name: "as large ones arrive", rec: sizes(func(d *recording.SegmentSizesDetail) { d.PassedBytes = 1448 })},
		{name: "small ones are lost", rec: sizes(func(d *recording.SegmentSizesDetail) { d.LostBytes = 500 })},
		{name: "the path was down once", rec: sizes(func(d *recording.SegmentSizesDetail) {
			d.Runs, d.BetweenRuns = 1, 0
		})},
		{name: "few arrived between", rec: sizes(func(d *recording.SegmentSizesDetail) {
			d.Runs, d.BetweenRuns = 3, 4
		})},
		{
			name: "sockets: large ones are lost", rec: sockets(func(*recording.SegmentSizesDetail) {}), found: true,
			evidence: "500 segments of 100 bytes on average arrived there", fix: "fragmentation needed",
		},
		{name: "sockets: a large one arrived", rec: sockets(func(d *recording.SegmentSizesDetail) {
			d.PassedBytes = 1448
		})},
		{name: "sockets: a small one is lost", rec: sockets(func(d *recording.SegmentSizesDetail) {
			d.LostBytes = 100
		})},
		{name: "sockets: large ones may have arrived", rec: sockets(func(d *recording.SegmentSizesDetail) {
			d.BetweenBytes = 300_000
		})},
		{name: "sockets: few were sent again", rec: sockets(func(d *recording.SegmentSizesDetail) { d.Lost = 4 })},
		{name: "sockets: the event of the size is older", rec: sockets(func(d *recording.SegmentSizesDetail) {
			d.LostBytes = 0
		}), found: true},
	})
}
