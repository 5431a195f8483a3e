package facts

// LostTime is what the callers of a node lost of their time before and beside their commands. It is no part of the
// calls that the kernel saw, which begin with a command's send.
type Overhead struct {
	OpeningNs    int64 // new connections on the way of calls: dials and handshakes
	UnansweredNs int64 // calls that were given up
	PingNs       int64 // tests of connections
	DNSQueryNs   int64 // questions to name servers before dials
	ExcessNs     int64 // of the slow calls themselves
	SpentNs      int64 // all their time on their connections
}

// Part is that of the callers' time on their connections which they lost before and beside their commands.
func (l Overhead) Share() float64 {
	return min(float64(l.OpeningNs+l.UnansweredNs+l.PingNs+l.DNSQueryNs)/float64(max(l.SpentNs, 1)), 1)
}

func (n *Node) Overhead(callers []*Caller) Overhead {
	l := Overhead{SpentNs: spentByCallers(callers), ExcessNs: n.Ledger.Users.ExcessNs}
	for _, c := range callers {
		for _, k := range c.Opened() {
			if !k.OpenedAheadOfUse(c.RoundTripNs()) {
				l.OpeningNs += k.OpeningNs()
			}
		}
		for _, k := range c.ConnsWhere((*Conn).ClosedWaiting) {
			l.UnansweredNs += k.IdleNs
		}
	}
	if p, ok := n.BorrowPings(); ok {
		l.PingNs = p.PingNs
	}
	l.DNSQueryNs = n.DNSQueryNs(callers)
	l.SpentNs += l.DNSQueryNs
	return l
}

// LostTimeOfAll are the losses of the callers of all nodes together: against them the shares that a cause has at each
// node can be added up, and a few connections to a node that is hardly called weigh what they cost.
func (c *Case) TotalOverhead() Overhead {
	if c.overhead == nil {
		c.overhead = &Overhead{ExcessNs: c.Ledger.Users.ExcessNs}
		for _, n := range c.Nodes {
			l := n.Overhead(n.Callers())
			c.overhead.OpeningNs += l.OpeningNs
			c.overhead.UnansweredNs += l.UnansweredNs
			c.overhead.PingNs += l.PingNs
			c.overhead.DNSQueryNs += l.DNSQueryNs
			c.overhead.SpentNs += l.SpentNs
		}
	}
	return *c.overhead
}

// spentByCallers is the time of all callers of the node on their connections.
func spentByCallers(callers []*Caller) (ns int64) {
	for _, c := range callers {
		ns += c.spentNs()
	}
	return max(ns, 1)
}
