package scenario

// healthyNarrowPath is the path of mtu-black-hole, and ends that are told of its MTU.
var healthyNarrowPath = Scenario{
	ID:    "healthy-narrow-path",
	Cause: HealthyCause,
	Title: "a path with an MTU of 1400 that says so by ICMP: one of 100 replies is too large for it at first",
	Make:  narrow("GET", false),
}
