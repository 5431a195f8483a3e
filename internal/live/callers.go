package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/recording"
)

// Caller is a process of this host, or another host, that calls.
type Caller struct {
	// Key is the same as long as the caller is kept.
	Key string
	// Name is what the process runs, with its number: "worker.py[812]"; or the host's address. Processes that have
	// ended are one caller without a number, "worker.py", once there are too many callers.
	Name   string
	Calls  int64 // since the view began
	Slow   int   // of the slow calls that are kept
	LostNs int64 // their time beyond the slow threshold
}

// caller is one that is kept, by its Key: the number of a process, endedKey of its program, or the address of a host.
type caller struct {
	comm  string // of a process, before it is known what it runs
	calls int64
	conns int     // that are open
	into  *caller // that its calls were added to, once it was forgotten; else nil
}

// conn is a connection of a client, by its address.
type conn struct {
	caller string // key; empty: not known
	node   string // that it is to; empty: not known
	// library is the client library with its version, by CLIENT SETINFO; empty: not known.
	library string
	calls   int64 // of the last row about its use
}

// otherCallers has the calls of callers for which there is no room.
const otherCallers = "other"

const endedPrefix = "ended "

// endedKey is that of the processes of a program that have ended.
func endedKey(program string) string { return endedPrefix + program }

// Callers are all that called, those first whose slow calls lost most.
func (v *View) Callers() []Caller { return v.CallersUntil(math.MaxInt64) }

// CallersUntil is Callers without the calls since a second, of those of the last keepMade.
func (v *View) CallersUntil(to int64) []Caller {
	v.mu.Lock()
	defer v.mu.Unlock()
	since := map[*caller]int64{}
	for second, made := range v.made {
		if second < to {
			continue
		}
		for c, calls := range made {
			for c.into != nil {
				c = c.into
			}
			since[c] += calls
		}
	}
	sums := map[string]*Caller{}
	for key, c := range v.callers {
		sums[key] = &Caller{Key: key, Name: v.nameOf(key, c.comm), Calls: c.calls - since[c]}
	}
	threshold := v.threshold()
	for _, s := range v.recent() {
		if s.Whose != Users {
			continue
		}
		key, comm := v.keyOf(s.Call.Conn, s.Call.Client)
		c := sums[key]
		if c == nil {
			c = &Caller{Key: key, Name: v.nameOf(key, comm)}
			sums[key] = c
		}
		c.Slow++
		c.LostNs += max(s.Ns()-threshold, 0)
	}
	out := make([]Caller, 0, len(sums))
	for _, c := range sums {
		if c.Calls > 0 || c.Slow > 0 {
			out = append(out, *c)
		}
	}
	slices.SortFunc(out, func(a, b Caller) int {
		return cmp.Or(cmp.Compare(b.LostNs, a.LostNs), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// NewCalls is how many calls each of the callers has made since it was in before, by Key. The calls of one that is not
// there any more are those of its program.
func NewCalls(before, now []Caller) map[string]int64 {
	made := make(map[string]int64, len(now))
	for _, c := range now {
		made[c.Key] = c.Calls
	}
	for _, c := range before {
		key := c.Key
		if _, kept := made[key]; !kept {
			program, _ := splitProcess(c.Name)
			key = endedKey(program)
		}
		if _, kept := made[key]; !kept {
			key = otherCallers
		}
		if _, kept := made[key]; kept {
			made[key] = max(made[key]-c.Calls, 0)
		}
	}
	return made
}

// splitProcess parts a process as recording.Call.Client has it, "redis-cli[1234]"; the number is 0 where it has none.
func splitProcess(process string) (name string, pid int) {
	if pid, ok := recording.PIDOf(process); ok {
		return process[:strings.LastIndexByte(process, '[')], pid
	}
	return process, 0
}

// nameOf is the name of a caller by its key. v.mu is held.
func (v *View) nameOf(key, comm string) string {
	if program, ended := strings.CutPrefix(key, endedPrefix); ended {
		return program
	}
	if pid, err := strconv.Atoi(key); err == nil {
		return fmt.Sprintf("%s[%d]", cmp.Or(v.programs[pid].Name, comm), pid)
	}
	return key
}

// keyOf is that of a caller: of its process, or else of its host, with the name of the process. v.mu is held.
func (v *View) keyOf(client, process string) (key, comm string) {
	if name, pid := splitProcess(process); pid > 0 {
		return strconv.Itoa(pid), name
	}
	if c := v.conns[client]; c != nil && c.caller != "" {
		return c.caller, ""
	}
	if i := strings.LastIndexByte(client, ':'); i > 0 {
		return strings.Trim(client[:i], "[]"), ""
	}
	return client, ""
}

// learn keeps which process a connection is of, and to which node it is. v.mu is held.
func (v *View) learn(client, node, comm string, pid int) {
	if pid <= 0 || client == "" {
		return
	}
	c, key := v.conn(client), strconv.Itoa(pid)
	c.node = cmp.Or(node, c.node)
	if c.caller == key {
		return
	}
	v.release(c)
	c.caller = key
	of := v.caller(key)
	of.conns++
	of.comm = cmp.Or(of.comm, comm)
}

// release has a connection be of nobody. v.mu is held.
func (v *View) release(c *conn) {
	if of := v.callers[c.caller]; of != nil {
		if of.conns--; of.conns == 0 {
			v.ended++
		}
	}
	c.caller = ""
}

// conn is that of an address. Where there are too many, any other is forgotten. v.mu is held.
func (v *View) conn(client string) *conn {
	c := v.conns[client]
	if c != nil {
		return c
	}
	for old, other := range v.conns {
		if len(v.conns) < maxConns {
			break
		}
		v.release(other)
		delete(v.conns, old)
	}
	c = &conn{}
	v.conns[client] = c
	return c
}

// caller is that of a key, or otherCallers where there is no room for it. v.mu is held.
func (v *View) caller(key string) *caller {
	if c := v.callers[key]; c != nil {
		return c
	}
	if len(v.callers) >= maxCallers && v.ended >= foldAfter {
		v.foldEnded()
	}
	if len(v.callers) >= maxCallers {
		key = otherCallers
	}
	c := v.callers[key]
	if c == nil {
		c = &caller{}
		v.callers[key] = c
	}
	return c
}

// foldAfter is how many processes have to end before it is worth a look at all callers.
const foldAfter = maxCallers / 8

// foldEnded joins the processes that have no connection, by their program. v.mu is held.
func (v *View) foldEnded() {
	v.ended = 0
	for _, key := range slices.Collect(maps.Keys(v.callers)) {
		c := v.callers[key]
		pid, err := strconv.Atoi(key)
		if err != nil || c.conns > 0 {
			continue
		}
		program, _ := splitProcess(v.nameOf(key, c.comm))
		delete(v.callers, key)
		delete(v.programs, pid)
		of := v.callers[endedKey(program)]
		if of == nil {
			of = &caller{}
			v.callers[endedKey(program)] = of
		}
		of.calls += c.calls
		c.into = of
	}
}

// keepMade is for how many seconds it is known which calls were made in each.
const keepMade = 60

// credit has a caller make calls on a connection in the second that ended at a time. v.mu is held.
func (v *View) credit(key string, of conn, calls, timeNs int64) {
	c, second := v.caller(key), (timeNs-5e8)/1e9
	if c.calls += calls; calls == 0 {
		return
	}
	e := v.edge(key, c.comm, of.node)
	e.Calls, e.Library = e.Calls+calls, cmp.Or(e.Library, of.library)
	if v.made[second] == nil {
		v.made[second] = map[*caller]int64{}
		for old := range v.made {
			if old != second && old < v.now()-keepMade {
				delete(v.made, old)
			}
		}
	}
	v.made[second][c] += calls
}

// ConnUse implements recording.Sink.
func (v *View) ConnUse(client string, u recording.ConnUse) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count(client, u.Calls, u.TimeNs)
}

// count has the caller of a connection make the calls that it had not made before, of this many in all. v.mu is held.
func (v *View) count(client string, calls, timeNs int64) {
	c := v.conn(client)
	key, _ := v.keyOf(client, "")
	v.credit(key, *c, max(calls-c.calls, 0), timeNs)
	c.calls = calls
}

// countRemote has another host make the calls that it had not made before. v.mu is held.
func (v *View) countRemote(s recording.Sample) {
	host, ok := strings.CutPrefix(s.Name, recording.CallsFromPrefix)
	k := [2]string{s.Subject, host}
	before, known := v.remote[k]
	if !ok || !known && len(v.remote) >= maxSamples {
		return
	}
	v.remote[k] = s.Value
	v.credit(host, conn{node: s.Subject}, int64(max(s.Value-before, 0)), s.TimeNs)
}

// connection learns whose a connection is, and counts the calls that were left without a reply. v.mu is held.
func (v *View) connection(e recording.Event) {
	var d recording.ConnDetail // of a handshake, too: the names are the same
	if json.Unmarshal([]byte(e.Detail), &d) != nil {
		return
	}
	if d.Side == recording.Client {
		v.learn(d.Client, e.Subject, d.Comm, d.PID)
		var h recording.HandshakeDetail
		if e.Kind == recording.KindHandshake && json.Unmarshal([]byte(e.Detail), &h) == nil && h.Library != "" {
			v.conn(h.Client).library = strings.TrimSpace(h.Library + " " + h.Version)
		}
	}
	if e.Kind != recording.KindClose {
		return
	}
	if s := v.second(e.Subject, e.TimeNs/1e9); s != nil && d.Waiting > 0 && !d.Blocking {
		if d.Side == recording.Server {
			s.failedAtServer += int64(d.Waiting)
		} else {
			s.failedClient += int64(d.Waiting)
		}
	}
	if d.Side == recording.Client {
		v.count(d.Client, d.Calls, e.TimeNs) // one that lived for less than a second had no row about its use
		v.release(v.conns[d.Client])
		delete(v.conns, d.Client)
	}
}

// learnOf keeps what a snapshot says of callers: what a process runs, and whose a connection is. v.mu is held.
func (v *View) learnOf(s recording.Snapshot) {
	switch s.Name {
	case recording.SnapshotProgram:
		var p recording.Program
		pid, err := strconv.Atoi(strings.TrimPrefix(s.Subject, recording.ProcessPrefix))
		if err == nil && json.Unmarshal([]byte(s.Body), &p) == nil && p.Name != "" {
			for old := range v.programs {
				if len(v.programs) < 2*maxCallers {
					break
				}
				delete(v.programs, old)
			}
			v.programs[pid] = p
		}
	case recording.SnapshotEnds:
		var ends recording.ConnEnds
		address := strings.TrimPrefix(s.Subject, recording.ConnPrefix)
		if json.Unmarshal([]byte(s.Body), &ends) != nil || strings.HasPrefix(address, "/") {
			return // of a Unix socket nobody sees the calls, nor the end
		}
		v.learn(address, ends.Node, ends.Comm, ends.PID)
	}
}
