package cause

import (
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/recording"
)

// supportWait says how many goroutines or threads waited.
func (f *Finding) supportWait(w hosts.ThreadWait) {
	f.support(recording.SourceProfile, float64(w.Count), w.App.ThreadNoun(),
		"%s: %d of %d %s in calls of %s wait for %s (median of %d readings, %d of them with such waits)",
		w.App.DisplayName(), w.Count,
		w.Calls, w.App.ThreadNoun(), w.Meaning.Library, w.Meaning.What, len(w.App.Snapshots), w.Snapshots)
}

// loseInPool claims the time of goroutines or threads that wait for a pool, by their share of those in calls; where no
// call was timed, as much as they waited.
func (f *Finding) loseInPool(c *facts.Case, w hosts.ThreadWait) {
	n, eachNs, waitedNs := c.Nodes[0], waitInPoolNs(c, w), w.Mean*c.Nodes[0].Seconds()*1e9
	if connection.CallTimeNs(n) > 0 {
		f.loseBeside(n, facts.LostWaiting, w.Share, eachNs)
		f.inAll(n, waitedNs)
		return
	}
	f.lose(n, facts.LostWaiting, waitedNs, eachNs)
}

// waitInPoolNs is how long each of them waits at least, by Little's law: as many wait at a time as commands are sent
// per second, times how long each waits. Where other programs send commands, too, each waits longer.
func waitInPoolNs(c *facts.Case, w hosts.ThreadWait) int64 {
	return int64(w.Mean / max(usersPerSecond(c), 1) * 1e9)
}

// usersPerSecond are the commands that the servers carry out, without slowpath's own.
func usersPerSecond(c *facts.Case) (perSecond float64) {
	for _, n := range c.Nodes {
		perSecond += mainthread.CommandsPerSecond(n) - connection.OwnCommandsPerSecond(n)
	}
	return perSecond
}

// minPoolWaitShare of the goroutines or threads that are in calls wait for the pool; fewer is a pool that is short of a
// connection now and then.
const minPoolWaitShare = degree.Most
