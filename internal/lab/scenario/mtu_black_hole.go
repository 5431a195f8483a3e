package scenario

import "time"

// mtuBlackHole has clients at the far end of a tunnel that is narrower than both ends believe. One of 100 replies takes
// full segments: these never arrive, and nobody tells the server.
var mtuBlackHole = Scenario{
	ID:    "mtu-black-hole",
	Cause: "packet-loss-rto",
	Title: "a path with an MTU of 1400 whose ICMP messages are dropped: one of 100 replies is too large for it",
	Fixes: []string{"let-icmp-pass", "clamp-mss"},
	Watch: 24 * time.Second,
	Make:  narrow("GET", true),
}

// mtuBlackHoleRequests: it is the clients that send too large segments.
var mtuBlackHoleRequests = Scenario{
	ID:    "mtu-black-hole-requests",
	Cause: "packet-loss-rto",
	Title: "a path with an MTU of 1400 whose ICMP messages are dropped: one of 100 requests is too large for it",
	Fixes: []string{"let-icmp-pass", "clamp-mss"},
	Watch: 24 * time.Second,
	Make:  narrow("SET", true),
}
