package facts

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
