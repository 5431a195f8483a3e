package watch

import (
	"context"
	"errors"
	"net/netip"
	"strings"

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
		r.status(recording.SourceTap, false, firstReason(err))
		r.blind(r.nodes[0].address, recording.BlindSpot{What: "the way of each call through the kernel (who had the CPU, which command was waited for, the client's side)",
			Why: firstReason(err), Enable: enableTap(err)})
		return nil
	}
	for _, hook := range t.Blind() {
		r.blind(r.nodes[0].address, recording.BlindSpot{What: "with the kernel source: " + hook, Why: "this kernel lacks it", Enable: "a newer kernel"})
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

// firstReason is the reason of the kernel source without what the kernel said in detail.
func firstReason(err error) string {
	for _, known := range []error{tap.ErrPrivilege, tap.ErrNoBTF, tap.ErrNoHook, tap.ErrLinux} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

func enableTap(err error) string {
	switch {
	case errors.Is(err, tap.ErrPrivilege):
		return "run as root, or: setcap cap_bpf,cap_perfmon+ep $(command -v slowpath)"
	case errors.Is(err, tap.ErrNoBTF):
		return "a kernel with CONFIG_DEBUG_INFO_BTF (those of the distributions have it)"
	case errors.Is(err, tap.ErrNoHook):
		return "Linux 6.3 or newer (tracepoints sock_recv_length and sock_send_length)"
	case errors.Is(err, tap.ErrLinux):
		return "run slowpath on the host of the server or of a client"
	}
	return "report it with the kernel's version"
}
