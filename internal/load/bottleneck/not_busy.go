package bottleneck

import (
	"fmt"
	"strings"
	"time"

	"slowpath/internal/format"
)

// notBusy: both sides have time left, so that calls wait for something else.
func (c *analysis) notBusy() Verdict {
	l := c.Load
	// I/O threads of Redis 8 sleep when they have nothing to do.
	if mean, threads := c.ioThreads(); threads > 0 && mean >= full {
		return verdict(ByServerCPU, 0.75, "the server's %s are at %s, its main thread at %s: give it more io-threads",
			format.Count(threads, "I/O thread"), percent(mean), percent(c.server.busy()))
	}
	switch {
	case c.oneHost() && c.server.runQueue+c.generator.runQueue >= 2*contended && (c.machineFull() || c.oneCPU()):
		v := c.sharedCPUOfLongerQueue()
		v.Certainty = 0.75
		return v
	case c.server.blocked >= majority:
		return c.blocked()
	case c.Pool != nil && c.Pool.Wait.Seconds() >= majority*(c.Pool.Wait+l.Service).Seconds():
		return verdict(ByPool, 0.9, "neither is busy: your pool of %d returns connections under a lock, and its %d "+
			"callers wait %s for a connection before calls of %s (%s)",
			c.Pool.Size, c.Pool.Callers, format.Brief(c.Pool.Wait), format.Brief(l.Service), c.bothBusy())
	case l.Connecting.Seconds() >= majority*l.Service.Seconds() && l.Connecting > 0:
		return verdict(ByRoundTrip, 0.9, "opening connections is the bottleneck: %s in flight at %s, %s of it to open "+
			"the connection of each call, gives %s (%s); keep connections open, or use more --connections",
			c.inFlight(), format.Brief(l.Service), format.Brief(l.Connecting), format.Rate(c.PerSecond()),
			c.bothBusy())
	}
	if v, ok := c.network(); ok {
		return v
	}
	return c.roundTrip()
}

// network: the link is full, bytes queue in the sockets, or most of a call is the round trip of the network.
func (c *analysis) network() (Verdict, bool) {
	l, n := c.Load, c.Network
	switch {
	case n.LinkBits > 0 && n.LinkUsedBits >= linkFull*n.LinkBits:
		return verdict(ByNetwork, 0.95, "the link is the bottleneck: %s of %s on %s (%s)", format.Bits(n.LinkUsedBits),
			format.Bits(n.LinkBits), n.Link, c.bothBusy()), true
	case c.requestsQueue() || c.repliesQueue():
		return verdict(ByNetwork, 0.8, "the network is the bottleneck: %s queue in the sockets, at %s/s (%s)",
			c.queuedDirections(), format.Bytes(int64(n.BytesPerSec)), c.bothBusy()), true
	case n.MinRTT > 0 && n.MinRTT.Seconds() >= majority*l.Service.Seconds():
		return verdict(ByRoundTrip, 0.95, "the round trip is the bottleneck: %s in flight at %s, %s of it in the "+
			"network, gives %s (%s); use more --connections or --pipeline, or a generator nearer to the server",
			c.inFlight(), format.Brief(l.Service), format.Brief(n.MinRTT), format.Rate(c.PerSecond()),
			c.bothBusy()), true
	}
	return Verdict{}, false
}

// roundTrip compares the time of a call with what is known of it: what both sides work for the calls in flight, the
// wake-ups, and the network. It is all that a call waits for when nothing else holds it up.
func (c *analysis) roundTrip() Verdict {
	l := c.Load
	known := l.Service.Seconds()*(c.server.busy()+c.generator.busy()) + (c.Network.MinRTT + wakeUps).Seconds()
	if c.server.Visibility == NotVisible {
		return c.serverNotVisible(known)
	}
	if known >= majority*l.Service.Seconds() {
		certainty := 0.9
		if l.Connections*l.Pipeline > 16 {
			certainty = 0.7
		}
		return verdict(ByRoundTrip, certainty, "the round trip is the bottleneck: %s in flight at %s gives %s (%s); "+
			"use more --connections or --pipeline",
			c.inFlight(), format.Brief(l.Service), format.Rate(c.PerSecond()), c.bothBusy())
	}
	return verdict(ByUnknown, 0.5, "cannot tell: neither is busy (%s), yet a call takes %s, of which their work, the "+
		"wake-ups and the network explain %s; something holds calls up: slowpath doctor may name it",
		c.bothBusy(), format.Brief(l.Service), format.Brief(time.Duration(known*1e9)))
}

// serverNotVisible is roundTrip where nothing is known of the server; known is in seconds.
func (c *analysis) serverNotVisible(known float64) Verdict {
	why := "it refuses INFO"
	for _, s := range c.Servers {
		if s.WhyNotVisible != "" {
			why = s.WhyNotVisible
		}
	}
	if known >= majority*c.Load.Service.Seconds() {
		return verdict(ByRoundTrip, 0.6, "the round trip is probably the bottleneck: %s in flight at %s gives %s, "+
			"with %s; the server cannot be seen (%s)",
			c.inFlight(), format.Brief(c.Load.Service), format.Rate(c.PerSecond()), c.generatorBusy(), why)
	}
	return verdict(ByUnknown, 0.5, "cannot tell: the generator is not the bottleneck (%s), and the server cannot be "+
		"seen (%s); let it answer INFO, or run this on its host",
		c.generatorBusy(), why)
}

// inFlight is "1 connection × 16".
func (c *analysis) inFlight() string {
	return fmt.Sprintf("%s × %d", format.Count(c.Load.Connections, "connection"), c.Load.Pipeline)
}

func (c *analysis) requestsQueue() bool {
	return c.Network.RwndLimited >= 3*noticeable || c.Network.RequestsQueued >= majority
}

func (c *analysis) repliesQueue() bool { return c.server.RepliesQueued >= majority }

func (c *analysis) queuedDirections() string {
	var both []string
	if c.requestsQueue() {
		both = append(both, "requests")
	}
	if c.repliesQueue() {
		both = append(both, "replies")
	}
	return strings.Join(both, " and ")
}
