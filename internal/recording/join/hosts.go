package join

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// aligned are the recordings of servers' hosts: those of several in the time of the first, with the names that callers
// use for their nodes. Of a host whose clients call no other one the clock is taken as right. One alone stays as it is,
// unless it has a node by an address of the loopback device, which says nothing to who asks for several hosts.
func aligned(recs []*recording.Recording, pairs [][]int, servers []int) (hosts []*recording.Recording) {
	if len(servers) == 1 && !slices.ContainsFunc(recs[servers[0]].Nodes(), onLoopback) {
		return []*recording.Recording{recs[servers[0]]}
	}
	shifts, names := shiftsOf(recs, pairs, servers), newNames(recs, pairs, servers)
	for _, i := range servers {
		m := mover{into: recording.New(), ns: shifts[i], names: names[i]}
		m.metas(recs[i])
		m.rows(recs[i], func(string) bool { return true })
		m.into.Damage = recs[i].Damage
		m.into.Index()
		hosts = append(hosts, m.into)
	}
	return hosts
}

func onLoopback(node string) bool {
	a, err := netip.ParseAddrPort(node)
	return err == nil && a.Addr().IsLoopback()
}

// shiftsOf is what is added to the times of each recording, by its index, to have those of the first server's host: the
// calls of a client to two of them say how far their clocks are apart.
func shiftsOf(recs []*recording.Recording, pairs [][]int, servers []int) map[int]int64 {
	shifts := map[int]int64{servers[0]: 0}
	for again := true; again; {
		again = false
		for i := range recs {
			for j := range recs {
				_, knowsServer := shifts[i]
				_, knowsClient := shifts[j]
				if pairs[i][j] == 0 || knowsServer == knowsClient {
					continue
				}
				m := match(recs[i], recs[j])
				ahead := newClockBounds(m.pairs, maxSendDelayNs).shift(m.pairs[0].start())
				if again = true; knowsServer {
					shifts[j] = shifts[i] + ahead
				} else {
					shifts[i] = shifts[j] - ahead
				}
			}
		}
	}
	return shifts
}

// newNames are the names of the nodes of servers' hosts, by the recording and the name there: those that callers use.
// Where two would have one name, the host's is a part of it.
func newNames(recs []*recording.Recording, pairs [][]int, servers []int) map[int]map[string]string {
	out, used := map[int]map[string]string{}, map[string]bool{}
	for _, i := range servers {
		out[i] = map[string]string{}
		for j, n := range pairs[i] {
			if n == 0 {
				continue
			}
			names := match(recs[i], recs[j]).nodeNames()
			for _, name := range slices.Sorted(maps.Keys(names)) {
				if node := names[name]; out[i][node] == "" && !used[name] {
					out[i][node], used[name] = name, true
				}
			}
		}
	}
	for _, i := range servers {
		for _, node := range recs[i].Nodes() {
			if out[i][node] != "" {
				continue
			}
			name := node
			if used[name] {
				name = cmp.Or(recs[i].Meta[recording.MetaHost], fmt.Sprintf("recording %d", i+1)) + " " + node
			}
			out[i][node], used[name] = name, true
		}
	}
	return out
}

// together is one recording of several servers' hosts, in the same time and with nodes of different names. Of the first
// it has all, and of the others what is not of their hosts: these are Hosts.
func together(hosts []*recording.Recording) *recording.Recording {
	if len(hosts) == 1 {
		return hosts[0]
	}
	m := mover{into: recording.New()}
	m.metas(hosts...)
	m.into.Hosts = map[string]*recording.Recording{}
	for k, host := range hosts {
		used := processSubjects(m.into)
		for _, p := range m.into.Profiles {
			used[p.Subject] = true
		}
		m.of = host.Meta[recording.MetaHost]
		m.rows(host, func(subject string) bool {
			return k == 0 || subject != recording.SubjectMachine && subject != recording.SubjectSelf &&
				!strings.HasPrefix(subject, recording.CgroupPrefix) && !used[subject]
		})
		if k > 0 {
			clientRows{server: m.into, client: host}.addCounters()
		}
		for _, node := range host.Nodes() {
			m.into.Hosts[node] = host
		}
		m.into.Damage = cmp.Or(m.into.Damage, host.Damage)
	}
	m.into.Index()
	return m.into
}

// mover copies rows into a recording, with other times and names of nodes.
type mover struct {
	into  *recording.Recording
	ns    int64
	names map[string]string
	of    string // the host, where there are others
}

func (m mover) name(of string) string { return cmp.Or(m.names[of], of) }

// metas are those of all recordings together.
func (m mover) metas(all ...*recording.Recording) {
	var nodes []string
	servers := map[string]recording.NodeServer{}
	begin, end, counts := int64(math.MaxInt64), int64(0), map[string]int64{}
	for _, r := range all {
		for key, value := range r.Meta {
			source, ofSource := strings.CutPrefix(key, recording.MetaSource)
			switch {
			case key == recording.MetaDropped || key == recording.MetaThinned:
				n, _ := strconv.ParseInt(value, 10, 64)
				counts[key] += n
			case m.into.Meta[key] == "" || ofSource && r.Used(source):
				m.into.SetMeta(key, value)
			}
		}
		for _, node := range r.Nodes() {
			nodes = append(nodes, m.name(node))
			servers[m.name(node)] = recording.NodeServer{Server: r.ServerOf(node), Kind: cmp.Or(r.Servers()[node].Kind,
				r.Meta[recording.MetaKind])}
		}
		from, to := r.Window()
		begin, end = min(begin, from), max(end, to)
	}
	for key, n := range counts {
		m.into.SetMeta(key, fmt.Sprint(n))
	}
	if len(nodes) > 0 {
		for key, value := range recording.NodeMetas(nodes, servers) {
			m.into.SetMeta(key, value)
		}
	}
	for key, ns := range map[string]int64{recording.MetaStart: begin, recording.MetaEnd: end} {
		if m.into.Meta[key] != "" {
			m.into.SetMeta(key, fmt.Sprint(ns+m.ns))
		}
	}
}

// rows copies those about subjects that are taken, and all calls and histograms.
func (m mover) rows(r *recording.Recording, takes func(subject string) bool) {
	m.calls(r)
	m.timed(r, takes, func(source string) string { return source })
	if r.Earlier() != nil {
		m.timed(r.Earlier(), takes, recording.Before)
	}
	for _, conn := range r.UsedConns() {
		for u := range r.ConnUses(conn) {
			u.TimeNs += m.ns
			m.into.ConnUse(conn, u)
		}
	}
	for _, p := range r.Profiles {
		if !takes(p.Subject) {
			continue
		}
		p.TimeNs += m.ns
		if recording.SampledOnHost(p.Kind) && m.ns != 0 {
			body, err := stacks.Move(p.Pprof, func(at int64) int64 { return at + m.ns })
			if err != nil {
				continue // truncated, not readable
			}
			p.Pprof = body
		}
		m.into.Profile(p)
	}
}

func (m mover) calls(r *recording.Recording) {
	above := int64(0)
	for _, c := range m.into.Calls {
		above = max(above, c.ID)
	}
	for _, c := range r.Calls {
		segs := slices.Clone(r.SegmentsOf(c.ID))
		for i := range segs {
			segs[i].FromNs, segs[i].ToNs = segs[i].FromNs+m.ns, segs[i].ToNs+m.ns
		}
		c.ID, c.Node = c.ID+above, m.name(c.Node)
		c.IntendedNs, c.StartNs, c.EndNs = c.IntendedNs+m.ns, c.StartNs+m.ns, c.EndNs+m.ns
		m.into.Call(c, segs...)
	}
}

// timed copies rows whose sources get the name that as gives. What a host did not see, and what was changed there, is
// copied whatever it is about.
func (m mover) timed(r *recording.Recording, takes func(subject string) bool, as func(string) string) {
	for _, h := range r.Histograms {
		h.Second, h.Source, h.Node = h.Second+int64(math.Round(float64(m.ns)/1e9)), as(h.Source), m.name(h.Node)
		m.into.Histogram(h)
	}
	for _, e := range r.Events {
		unseen := e.Kind == recording.KindUnseen
		if !unseen && e.Kind != recording.KindBlindSpot && e.Subject != recording.SubjectMachine && !takes(e.Subject) {
			continue
		}
		e.TimeNs, e.Source, e.Subject, e.Detail = e.TimeNs+m.ns, as(e.Source), m.name(e.Subject), m.renamed(e.Detail)
		if unseen && m.of != "" { // that of another host is another one
			u := recording.DetailOf[recording.Unseen](e)
			u.What += " (" + m.of + ")"
			e.Detail = recording.Detail(u)
		}
		m.into.Event(e)
	}
	for _, s := range r.Snapshots {
		if takes(s.Subject) {
			s.TimeNs, s.Source, s.Subject, s.Body = s.TimeNs+m.ns, as(s.Source), m.name(s.Subject), m.renamed(s.Body)
			m.into.Snapshot(s)
		}
	}
	for s := range r.Samples() {
		if takes(s.Subject) {
			s.TimeNs, s.Source, s.Subject = s.TimeNs+m.ns, as(s.Source), m.name(s.Subject)
			m.into.Sample(s)
		}
	}
}

// renamed is JSON with the new names of nodes.
func (m mover) renamed(detail string) string {
	for from, to := range m.names {
		detail = strings.ReplaceAll(detail, `"node":`+recording.Detail(from), `"node":`+recording.Detail(to))
	}
	return detail
}
