package source

import (
	"cmp"
	"context"
	"net/netip"

	"slowpath/internal/recording"
	"slowpath/internal/source/host"
	"slowpath/internal/source/server"
	"slowpath/internal/source/tap"
)

// loadTap loads the programs of the tap, before it is known which nodes there are.
func (r *run) loadTap() {
	if r.NoTap {
		return
	}
	r.Progress("loading the kernel programs")
	o := tap.Options{
		Clock: r.Clock, Files: r.FS, Sink: r.sink, Slow: max(r.slow(), 0), Processes: r.Processes,
		Connections: r.Connections, Budget: r.TapBudget, Side: r.End,
	}
	if r.Sparing {
		o.DrainEvery, o.ReportBytes = sparingDrain, sparingReports
		o.MinWork = max(cmp.Or(o.Slow, tap.DefaultSlow)/sparingWork, tap.DefaultMinWork)
	}
	if !r.NoHost {
		o.Quota = (&host.Quotas{FS: r.FS, Clock: r.Clock}).Of
	}
	r.kernel, r.noTap = tap.Load(o, maxNodes)
}

// startTap has the tap watch all nodes. Where it cannot run, the watch goes on without it, and the recording says why
// and what would help.
func (r *run) startTap() {
	if r.NoTap {
		r.status(recording.SourceTap, false, "left out by --no-tap")
		return
	}
	nodes := r.tapNodes()
	if len(nodes) == 0 {
		r.closeTap()
		r.status(recording.SourceTap, false, "calls over a unix socket are not seen by the tap")
		r.filterUnavailable("calls over a unix socket are not seen by the tap", "name the server's HOST:PORT")
		return
	}
	err := r.noTap
	if err == nil {
		err = r.kernel.Watch(nodes)
	}
	if err != nil {
		r.closeTap()
		r.status(recording.SourceTap, false, tap.Reason(err))
		r.filterUnavailable(tap.Reason(err), tap.Remedy(err))
		r.blind(r.nodes[0].address, recording.BlindSpot{
			What: "the way of each call through the kernel (who had the CPU, which command it waited for, the " +
				"client's side)",
			Why: tap.Reason(err), Enable: tap.Remedy(err),
		})
		return
	}
	for _, b := range r.kernel.Blind() {
		r.blind(r.nodes[0].address, b)
	}
	for _, n := range r.nodes {
		if n.unnamed && n.proxy.PID == 0 && len(nodes) > 1 { // of a proxy on this host the calls are known
			r.blind(n.address, recording.OwnCallsOfProxy(n.address))
		}
	}
	r.status(recording.SourceTap, true, "")
}

func (r *run) closeTap() {
	if r.kernel != nil {
		_ = r.kernel.Close() // it has seen nothing
		r.kernel = nil
	}
}

// filterUnavailable reports that calls cannot be filtered by process: only the tap knows whose a call is.
func (r *run) filterUnavailable(why, enable string) {
	if r.Processes != (tap.ProcessFilter{}) {
		r.blind(r.nodes[0].address, recording.BlindSpot{
			What: "which calls are those of " + r.Processes.String() + ": the report is about all calls",
			Why:  why, Enable: enable,
		})
	}
}

// runTap records what the tap sees until ctx ends.
func (r *run) runTap(ctx context.Context, t *tap.Tap) {
	defer t.Close()
	r.runSource(ctx, "tap", r.nodes[0], func() error { return t.Run(ctx) })
}

// tapNodes are the servers that are reached over TCP.
func (r *run) tapNodes() []tap.Node {
	var out []tap.Node
	for _, n := range r.nodes {
		if n.target.Network != "tcp" {
			continue
		}
		t := tap.Node{Address: n.address, Proxy: n.proxy.PID, Observers: addressesOf(n.observers)}
		if a, err := netip.ParseAddrPort(n.remote); err == nil {
			t.Remote = a
		}
		if n.process != nil && !n.behindProxy() { // what the server behind a proxy does for others are not these calls
			t.PID, t.Port = n.process.PID, n.process.Port
		}
		out = append(out, t)
	}
	return out
}

// calledNodes are the addresses at which callers of this host reach the servers.
func (r *run) calledNodes() map[netip.AddrPort]string {
	out := map[netip.AddrPort]string{}
	for _, n := range r.nodes {
		if a, err := netip.ParseAddrPort(n.remote); err == nil && n.target.Network == "tcp" {
			out[netip.AddrPortFrom(a.Addr().Unmap(), a.Port())] = n.address
		}
	}
	return out
}

// addressesOf are the addresses of those clients that watch the node, too.
func addressesOf(clients []server.Client) (out []netip.AddrPort) {
	for _, c := range clients {
		if a, err := netip.ParseAddrPort(c.Addr); err == nil && c.Observes() {
			out = append(out, a)
		}
	}
	return out
}

// listed tells the tap which of a node's clients watch it, too: those that were there before the watch. Hosts get their
// names.
func (r *run) listed(n node) func([]server.Client) {
	return func(clients []server.Client) {
		if r.kernel != nil {
			for _, a := range addressesOf(clients) {
				r.kernel.Observe(n.address, a)
			}
		}
		if r.names != nil {
			r.names.listed(clients)
		}
	}
}
