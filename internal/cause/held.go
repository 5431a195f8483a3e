package cause

import (
	"fmt"
	"net"
	"sort"
	"strings"

	"slowpath/internal/account"
	"slowpath/internal/recording"
)

// Held is the time that slow calls waited while the event loop did something else, with what it did.
type Held struct {
	Claim
	Suspects []account.Suspect // each once, those that were waited for longest first
}

// held claims the time that slow calls spent on suspects that match.
func (n *Node) held(match func(account.Suspect) bool) Held {
	w := waits{n: n, match: match, known: map[int]bool{}, byNs: map[int]int64{}}
	h := Held{Claim: n.claimOf(w.of)}
	indexes := make([]int, 0, len(w.byNs))
	for i := range w.byNs {
		indexes = append(indexes, i)
	}
	sort.Slice(indexes, func(a, b int) bool {
		if w.byNs[indexes[a]] != w.byNs[indexes[b]] {
			return w.byNs[indexes[a]] > w.byNs[indexes[b]]
		}
		return indexes[a] < indexes[b]
	})
	for _, i := range indexes {
		h.Suspects = append(h.Suspects, n.Ledger.Suspects[i])
	}
	return h
}

// waits adds up for which suspects slow calls waited.
type waits struct {
	n     *Node
	match func(account.Suspect) bool
	known map[int]bool // match may be costly, and a suspect has many segments
	byNs  map[int]int64
}

func (w *waits) matches(i int) bool {
	if i < 0 {
		return false
	}
	is, asked := w.known[i]
	if !asked {
		is = w.match(w.n.Ledger.Suspects[i])
		w.known[i] = is
	}
	return is
}

// byTheClock reports whether the duration of a suspect holds the waits for a CPU in its middle. That is so of all that the server
// measures itself; but a command is believed only where the thread was seen at work for long.
func byTheClock(s account.Suspect) bool {
	switch s.Kind {
	case account.KindExpire, account.KindFork:
		return true
	case account.KindCommand, account.KindFree:
		return s.Busy && s.DurationNs >= account.SeenBusyNs
	}
	return false
}

// of is the time that one call waited. The time of a command is by the clock: where it was put off the CPU in its middle, whoever
// waits for it waits for that too.
func (w *waits) of(a account.Account) int64 {
	var ns int64
	room := map[int]int64{} // by how much more than this the suspects may have lasted
	for _, s := range a.Segments {
		if !w.matches(s.Suspect) {
			continue
		}
		ns += s.Ns()
		w.byNs[s.Suspect] += s.Ns()
		p := w.n.Ledger.Suspects[s.Suspect]
		if _, seen := room[s.Suspect]; !seen && byTheClock(p) {
			room[s.Suspect] = p.DurationNs * int64(max(p.Count, 1))
		}
		room[s.Suspect] -= s.Ns()
	}
	var more int64
	for _, left := range room {
		more += max(left, 0)
	}
	return ns + min(a.In(account.Server, account.RunQueue), more)
}

// matters reports whether a claim is worth a finding: one short stall is no pattern.
func (c Claim) matters() bool { return c.Calls >= healthyMinCalls || c.MaxNs >= materialNs }

// materialNs is the longest wait that may happen now and then in a system that is well.
const materialNs = int64(20e6)

// confidence by how well the work itself was seen: the thread on the CPU meanwhile, the server's own record of each occurrence, or
// only sums between two polls.
func (h Held) confidence(n *Node) float64 {
	best := 0.0
	for _, s := range h.Suspects {
		c := map[string]float64{"slowlog": 0.85, "latency": 0.85, "info": 0.8, "commandstats": 0.75}[s.Source]
		if n.Hosted() && s.Busy {
			c = 0.95
		} else if n.Hosted() && s.Source == "info" {
			c = 0.9 // a sum over many turns of the loop
		} else if n.Hosted() && s.DurationNs < account.SeenBusyNs {
			c += 0.05
		}
		best = max(best, c)
	}
	return best
}

// doubtStalls weighs, where nobody watched the host, whether these commands were long by their own work: a thread that is kept from
// running makes any command long, those of constant time among them, and uses less CPU time than they last.
func (f *Finding) doubtStalls(n *Node, h Held) {
	if n.Hosted() {
		return
	}
	var own, cheap, longest int64
	for _, s := range n.Ledger.Suspects {
		if s.Node != n.Address || s.Kind != account.KindCommand || s.Source != "slowlog" {
			continue
		}
		own += s.DurationNs
		if account.ConstantTime(s.Command) && n.commandCause(s) == "" {
			cheap++
			longest = max(longest, s.DurationNs)
		}
	}
	if cheap >= 2 && len(h.Suspects) > 0 && longest*2 >= h.Suspects[0].DurationNs {
		f.doubt(recording.SourceServer, fmt.Sprintf("SLOWLOG also shows %d commands that do little work, up to %s: something keeps the server from running", cheap, dur(longest)), float64(cheap), "commands")
		f.Confidence = min(f.Confidence, 0.4)
	}
	if cores, source, ok := n.MainCores(); ok && float64(own) > 1.5*cores*n.Seconds()*1e9 && own > int64(1e8) {
		f.doubt(source, fmt.Sprintf("the commands of SLOWLOG lasted %s, but the server used only %.3g s of CPU time", dur(own), cores*n.Seconds()), cores*n.Seconds(), "s")
		f.Confidence = min(f.Confidence, 0.4)
	}
}

// supportWaits says how many slow calls waited.
func (f *Finding) supportWaits(n *Node, h Held, what string) {
	source := recording.SourceServer
	if n.Hosted() {
		source = recording.SourceHost
	}
	if h.Calls > 0 {
		f.support(source, fmt.Sprintf("%d of %d slow calls waited for %s, up to %s in one call", h.Calls, len(n.Ledger.Slow), what, dur(h.MaxNs)), float64(h.Calls), "calls")
	}
}

// supportCommands adds what the server's records say of each command, the worst three.
func (f *Finding) supportCommands(n *Node, ss []account.Suspect) {
	type sum struct {
		account.Suspect
		count   int
		totalNs float64
		clients map[string]bool
	}
	by := map[string]*sum{}
	var order []string
	for _, s := range ss {
		key := s.Source + " " + s.Command
		t := by[key]
		if t == nil {
			t = &sum{Suspect: s, clients: map[string]bool{}}
			by[key], order = t, append(order, key)
		}
		t.count += max(s.Count, 1)
		t.totalNs += float64(s.DurationNs) * float64(max(s.Count, 1))
		t.DurationNs = max(t.DurationNs, s.DurationNs)
		if s.Client != "" {
			t.clients[hostOf(s.Client)] = true
		}
	}
	for _, key := range order[:min(len(order), 3)] {
		t := by[key]
		if t.Source == "slowlog" {
			text := fmt.Sprintf("SLOWLOG: %s took up to %s, %s in the watch", t.Command, dur(t.DurationNs), times(t.count))
			if who := n.who(t.Suspect); who != "" {
				text += ", from " + who
			}
			f.support(recording.SourceServer, text, float64(t.DurationNs), "ns")
			continue
		}
		mean := int64(t.totalNs / float64(t.count))
		f.support(recording.SourceServer, fmt.Sprintf("commandstats: %s took %s on average, %s while calls waited", t.Command, dur(mean), times(t.count)), float64(mean), "ns")
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// who names the client of a suspect: its address from SLOWLOG, its library from CLIENT LIST; where only commandstats has the
// command, the clients whose last command it was.
func (n *Node) who(s account.Suspect) string {
	var same *Client
	for i, c := range n.clients {
		if c.Self {
			continue
		}
		switch {
		case s.Client != "" && c.Addr == s.Client:
			return s.Client + library(c)
		case s.Client != "" && hostOf(c.Addr) == hostOf(s.Client) && c.LibName != "", s.Client == "" && sameAs(c.Cmd, s.Command):
			same = &n.clients[i]
		}
	}
	switch {
	case s.Client == "" && same != nil:
		return same.Addr + library(*same)
	case s.Client != "" && same != nil:
		return s.Client + library(*same)
	}
	return s.Client
}

// sameAs compares the cmd of CLIENT LIST ("client|list", before 7.0 "client") with a command.
func sameAs(cmd, command string) bool {
	cmd = strings.ToUpper(strings.ReplaceAll(cmd, "|", " "))
	return cmd != "" && (cmd == command || strings.HasPrefix(command, cmd+" "))
}

func library(c Client) string {
	parts := strings.TrimSpace(c.LibName + " " + c.LibVer)
	if c.Name != "" {
		parts = strings.TrimPrefix(parts+", name "+c.Name, ", ")
	}
	if parts == "" {
		return ""
	}
	return " (" + parts + ")"
}

func hostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}

// from is " from ADDRESS" for the fix, or nothing.
func (n *Node) from(ss []account.Suspect) string {
	for _, s := range ss {
		if who := n.who(s); who != "" {
			return " from " + who
		}
	}
	return ""
}
