package facts

// Bounds of a floor. Within a data centre a round trip takes 0.05-0.5 ms, between the zones of a region up to 1 ms.
const (
	FloorNs       = int64(1e6)
	FloorOfWork   = 10 // times the server's own time
	FloorSteady   = 2  // the median is at most this times the fastest call
	FloorCalls    = 20 // calls that a floor is judged by
	MaxIdleDemand = 0.5
)

// ProbeWorkNs is the server's own time for a call such as the probe makes.
func (n *Node) ProbeWorkNs() int64 {
	usec, calls := 0.0, 0.0
	for _, c := range []string{"ping", "get"} {
		usec += n.Growth("cmdstat_" + c + ".usec")
		calls += n.Growth("cmdstat_" + c + ".calls")
	}
	if calls == 0 {
		return 0
	}
	return int64(usec / calls * 1000)
}
