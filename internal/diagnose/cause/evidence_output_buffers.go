package cause

import (
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Classes of clients, as client-output-buffer-limit names them.
const (
	normalClients  = "normal"
	replicaClients = "slave"
	pubSubClients  = "pubsub"
)

// OutputLimit is client-output-buffer-limit of a class of clients: at Hard bytes of replies that a client has not
// taken, or at Soft bytes for SoftSeconds, the server closes its connection. 0: no limit.
type OutputLimit struct {
	Class                   string
	Hard, Soft, SoftSeconds int64
}

// outputLimits are those of all classes, as CONFIG GET has them ("normal 0 0 0 slave …"); none where it is forbidden.
func outputLimits(n *facts.Node) (out []OutputLimit) {
	text, _ := n.Config("client-output-buffer-limit")
	var numbers []*int64 // of the last class, which are still to come
	for _, word := range strings.Fields(text) {
		v, err := strconv.ParseInt(word, 10, 64)
		switch {
		case err != nil:
			out = append(out, OutputLimit{Class: word})
			l := &out[len(out)-1]
			numbers = []*int64{&l.Hard, &l.Soft, &l.SoftSeconds}
		case len(numbers) > 0:
			*numbers[0], numbers = v, numbers[1:]
		}
	}
	return out
}

// outputClass is the class of a client.
func outputClass(c caller.Client) string {
	switch {
	case strings.Contains(c.Flags, "S"):
		return replicaClients
	case strings.Contains(c.Flags, "P"):
		return pubSubClients
	}
	return normalClients
}

// OutputKills are clients that the server closed since they had not taken what it sent them.
type OutputKills struct {
	// Count is their number: by the server where it is Counted (7.4 and later), else connections that the tap saw.
	Count   float64
	Counted bool
	// Limit is that of their class; its class is empty where that is not known.
	Limit OutputLimit
	// Largest is a client whose output buffer CLIENT LIST has near the limit; its OMem is 0 where there is none.
	Largest caller.Client
	// MostBytes is the largest output buffer that INFO has.
	MostBytes float64
	// Callers are those whose connections the server's end closed, where the tap saw that.
	Callers facts.NameCounts
}

// outputKills are those of this watch; ok is false where there are none.
func outputKills(n *facts.Node) (k OutputKills, ok bool) {
	counter := n.Series(series.ClientsOverOutputLimit)
	k.Counted, k.Count, k.Callers = len(counter) > 0, counter.Growth(), facts.NameCounts{}
	if k.Counted && k.Count == 0 {
		return k, false
	}
	k.MostBytes, _ = n.Series(series.ClientRecentMaxOutputBuffer).Max()
	findOutputClass(n, &k)
	closed := 0
	limit := n.IdleLimitNs()
	for _, c := range caller.Callers(n) {
		for _, conn := range c.Conns {
			ofClass := conn.Calls == 0 // subscribers and replicas have no calls
			if k.Limit.Class == normalClients {
				ofClass = conn.Unanswered > 0 // what was in the buffer is lost
			}
			if conn.ServerClosedNs > 0 && (limit == 0 || conn.ServerClosedIdleNs < limit) && ofClass {
				k.Callers[c.Name]++
				closed++
			}
		}
	}
	if k.Counted {
		return k, true
	}
	k.Count = float64(closed)
	near := k.Largest.OMem > 0 || k.Limit.near(k.MostBytes)
	otherwise := clientKills(n) + n.Growth(series.RejectedConnections) + float64(len(nodes.Restarts(n)))
	known := k.Limit.Class == pubSubClients || k.Limit.Class == normalClients
	return k, closed > 0 && near && known && otherwise == 0
}

// clientKills is how many CLIENT KILL there were, or can have been: before 7.0 the server counts all CLIENT commands
// together, and those that the tap saw at its end are known.
func clientKills(n *facts.Node) float64 {
	unknown := mainthread.ClientCommands(n)
	for _, h := range n.Rec.HistogramSums(recording.SourceTap) {
		if h.Node == n.Address && strings.HasPrefix(h.Op, recording.Server+" CLIENT ") {
			unknown -= float64(h.Sum.TotalCount())
		}
	}
	seen := n.Growth(series.CommandCalls("client|kill"))
	for _, c := range caller.AdminCommands(n) {
		if c.Command == "CLIENT KILL" {
			seen++
		}
	}
	return seen + max(unknown, 0)
}

// findOutputClass finds the class of the clients that were closed: that of a client in CLIENT LIST near its limit, else
// the only one with clients whose limit the largest output buffer of INFO has reached, else the only one with a limit.
func findOutputClass(n *facts.Node, k *OutputKills) {
	replicas, _ := n.Series(series.ConnectedSlaves).Max()
	subscribers := 0
	limits := outputLimits(n)
	for _, c := range caller.Clients(n) {
		class := outputClass(c)
		if class == pubSubClients {
			subscribers++
		}
		for _, l := range limits {
			if l.Class == class && l.near(float64(c.OMem)) && c.OMem > k.Largest.OMem {
				k.Largest, k.Limit = c, l
			}
		}
	}
	if k.Limit.Class != "" {
		return
	}
	has := map[string]bool{normalClients: true, replicaClients: replicas > 0, pubSubClients: subscribers > 0}
	limits = slices.DeleteFunc(limits, func(l OutputLimit) bool { return l.Hard == 0 && l.Soft == 0 || !has[l.Class] })
	reached := slices.DeleteFunc(slices.Clone(limits), func(l OutputLimit) bool { return !l.near(k.MostBytes) })
	for _, of := range [][]OutputLimit{reached, limits} {
		if len(of) == 1 {
			k.Limit = of[0]
			return
		}
	}
}

// near tells whether an output buffer of so many bytes is near the limit.
func (l OutputLimit) near(bytes float64) bool {
	return l.Hard > 0 && bytes >= degree.NearlyAll*float64(l.Hard) || l.Soft > 0 && bytes >= float64(l.Soft)
}
