package server

import (
	"net"
	"time"
)

// serverClock turns the whole seconds of SLOWLOG and LATENCY into windows of the watcher's clock.
//
// From 7.0 INFO has server_time_usec, which was read between send and reply. Before that the two clocks are taken for
// the same: on one host they are, on two hosts NTP keeps them within half a second, which the window allows for.
type serverClock struct {
	remote bool
	known  bool
	offset int64 // server minus watcher, ns
	errNs  int64 // of offset, at time at
	at     int64
}

const (
	// lagNs is by how much time() lags: the kernel updates the coarse clock at each tick, 10 ms apart at worst
	// (CONFIG_HZ=100).
	lagNs = int64(10 * time.Millisecond)
	// driftPerSecondNs is what a clock that NTP steers may gain in a second, 500 ppm at most.
	driftPerSecondNs = int64(500 * time.Microsecond)
	unknownErrNs     = int64(500 * time.Millisecond)
)

// learn takes server_time_usec of a poll.
func (c *serverClock) learn(at pollTime, serverUsec float64) {
	errNs := (at.done - at.sent) / 2
	aged := c.errNs + (at.done-c.at)/int64(time.Second)*driftPerSecondNs
	if serverUsec <= 0 || serverUsec > maxSeconds*1e6 || c.known && errNs > aged {
		return
	}
	c.known, c.offset, c.errNs, c.at = true, int64(serverUsec)*1000-(at.sent+errNs), errNs, at.done
}

// window is when a whole second of the server's clock was, by the watcher's.
func (c *serverClock) window(second int64) (fromNs, toNs int64) {
	offset, errNs := c.offset, c.errNs
	if !c.known {
		offset, errNs = 0, 0
		if c.remote {
			errNs = unknownErrNs
		}
	}
	from := second*int64(time.Second) - offset
	return from - errNs, from + int64(time.Second) + lagNs + errNs
}

// second is the server's whole second at a time of the watcher's clock.
func (c *serverClock) second(timeNs int64) int64 {
	if c.known {
		timeNs += c.offset
	}
	return timeNs / int64(time.Second)
}

// isRemote reports whether the other end is on another host, as far as the addresses show it.
func isRemote(local, remote string) bool {
	remoteHost, _, err := net.SplitHostPort(remote)
	if err != nil {
		return false // a unix socket
	}
	localHost, _, _ := net.SplitHostPort(local)
	ip := net.ParseIP(remoteHost)
	return remoteHost != localHost && (ip == nil || !ip.IsLoopback())
}
