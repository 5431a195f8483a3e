package server

import "time"

// Budget of the server's time.
const (
	defaultBudget = 0.001
	// headStart is the budget at the start, in seconds of the watch: the first poll asks for more than the others.
	headStart = 5
	// longestCommand bounds what a single command of the watch may take: the whole server waits for it.
	longestCommand = 10 * time.Millisecond
	// longestRound is how far apart polls get on a server whose INFO is expensive.
	longestRound = 60 * time.Second
	// unsureRound is how far apart they get as long as the cost was measured only once.
	unsureRound = 5 * time.Second
)

// budget is the part of the server's time that the watch may use: it grows with time, and commands use it.
type budget struct {
	share   float64
	startNs int64
	spent   time.Duration // as measured
	pending time.Duration // taken, and not measured yet
}

func (b *budget) credit(nowNs int64) time.Duration {
	return time.Duration(b.share*(float64(nowNs-b.startNs)+headStart*1e9)) - b.spent - b.pending
}

// take reports whether a command of this cost may be sent now, and then reserves the cost.
func (b *budget) take(nowNs int64, cost time.Duration) bool {
	if cost > longestCommand || cost > b.credit(nowNs) {
		return false
	}
	b.pending += cost
	return true
}

// charge takes what the commands up to now have cost.
func (b *budget) charge(cost time.Duration) {
	b.spent, b.pending = b.spent+cost, 0
}

// never reports whether a cost is too high for any time of a watch.
func (b *budget) never(cost time.Duration) bool {
	return cost > longestCommand || cost > time.Duration(b.share*float64(longestRound))
}

// interval is the time between polls of this cost: every, or longer where the budget asks for it.
func (b *budget) interval(every, cost time.Duration) time.Duration {
	if b.share <= 0 {
		return longestRound
	}
	return min(max(every, time.Duration(float64(cost)/b.share)), max(every, longestRound))
}
