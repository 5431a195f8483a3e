package watch

import (
	"context"
	"net/netip"

	"slowpath/internal/recording"
	"slowpath/internal/tap"
)

// openTap loads the kernel source for all nodes. Where it cannot run, the watch goes on without it, and the recording says why and what
// would help.
func (r *run) openTap() *tap.Tap {
	if r.NoTap {
		r.status(recording.SourceTap, false, "left out by --no-tap")
		return nil
	}
	t, err := tap.Open(tap.Options{Clock: r.Clock, Sink: r.sink, Nodes: r.tapNodes(), Slow: max(r.slow(), 0), SamplePerSecond: 0})
	if err != nil {
		r.status(recording.SourceTap, false, tap.Reason(err))
		r.blind(r.nodes[0].address, recording.BlindSpot{What: "the way of each call through the kernel (who had the CPU, which command was waited for, the client's side)",
			Why: tap.Reason(err), Enable: tap.Remedy(err)})
		return nil
	}
	for _, hook := range t.Blind() {
		r.blind(r.nodes[0].address, recording.BlindSpot{What: "with the kernel source: " + hook, Why: "this kernel lacks it", Enable: "a newer kernel"})
	}
	if err := tap.Drop(); err != nil {
		r.Progress(err.Error())
	}
	r.status(recording.SourceTap, true, "")
	return t
}

// runTap passes on what the kernel source sees until ctx ends.
func (r *run) runTap(ctx context.Context, t *tap.Tap) {
	defer t.Close()
	r.source(ctx, "tap", r.nodes[0], func() error { return t.Run(ctx) })
}

func (r *run) tapNodes() []tap.Node {
	var out []tap.Node
	for _, n := range r.nodes {
		t := tap.Node{Address: n.address}
		if a, err := netip.ParseAddrPort(n.remote); err == nil && n.target.Network == "tcp" {
			t.Remote = a
		}
		if n.process != nil {
			t.PID, t.Port = n.process.PID, n.process.Port
		}
		out = append(out, t)
	}
	return out
}
