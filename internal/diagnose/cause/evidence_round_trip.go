package cause

// Bounds of a floor. Within a data centre a round trip takes 0.05-0.5 ms, between the zones of a region up to 1 ms.
const (
	floorNs       = int64(1e6)
	floorOfWork   = 10  // times the server's own time
	floorSteady   = 2   // the median is at most this times the fastest call
	floorCalls    = 20  // the least number of calls that a floor is judged by
	maxIdleDemand = 0.5 // of a core: with less demand the main thread is idle enough to answer at once
)
