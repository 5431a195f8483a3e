package pasted

import (
	"cmp"
	"fmt"
	"slices"

	"slowpath/internal/recording"
	told "slowpath/internal/source/server"
	"slowpath/internal/wire/resp"
)

// server is what the texts have of one.
type server struct {
	name, kind, product string
	address             string // of a prompt
	runID               string
	infos               []infoAt
	slowlogs, latests   []resp.Value
	histories           []part
	clients, doctor     []string
	configs             []resp.Value
	slow                int // entries of SLOWLOG, once they are written
	undated             int // replies to INFO that were left out: it is not known when they were made
}

// infoAt is a reply to INFO.
type infoAt struct {
	text   string
	fields told.Fields
	ns     int64 // since the Unix epoch
}

// uptime is that of the server in seconds.
func (i infoAt) uptime() int64 {
	return int64(min(max(i.fields.Numbers["uptime_in_seconds"], 0), firstSecond))
}

// groups tells by which server each part was printed: by run_id, by the address of the prompt, or by what it follows.
type groups struct {
	servers []*server
	now     *server // that of the parts before in this file
}

// file begins another file.
func (g *groups) file() { g.now = nil }

func (g *groups) add(p part) {
	v := g.serverOf(p)
	if v == nil {
		return
	}
	g.now = v
	v.address = cmp.Or(v.address, p.address)
	switch p.kind {
	case infoText:
		v.info(p.text)
	case slowlogReply:
		v.slowlogs = append(v.slowlogs, p.value)
	case latestReply:
		v.latests = append(v.latests, p.value)
	case historyReply:
		v.histories = append(v.histories, p)
	case clientsText:
		v.clients = append(v.clients, p.text)
	case configReply:
		v.configs = append(v.configs, p.value)
	case doctorText:
		v.doctor = append(v.doctor, p.text)
	}
}

// serverOf is the server of a part; nil where there are too many.
func (g *groups) serverOf(p part) *server {
	runID := ""
	if p.kind == infoText {
		runID = told.ParseInfo(p.text).Text["run_id"]
	}
	fits := func(v *server) bool {
		return (runID == "" || v.runID == "" || v.runID == runID) &&
			(p.address == "" || v.address == "" || v.address == p.address)
	}
	v := g.now
	if v == nil || !fits(v) {
		i := slices.IndexFunc(g.servers, func(v *server) bool {
			return fits(v) && (runID != "" && v.runID == runID || p.address != "" && v.address == p.address)
		})
		switch {
		case i >= 0:
			v = g.servers[i]
		case len(g.servers) >= maxServers:
			return nil
		default:
			v = &server{}
			g.servers = append(g.servers, v)
		}
	}
	v.runID = cmp.Or(v.runID, runID)
	return v
}

// info takes a reply to INFO, or a section of one that has no time of its own and belongs to the one before.
func (v *server) info(text string) {
	i := infoAt{text: text, fields: told.ParseInfo(text)}
	_, timed := i.fields.Numbers["uptime_in_seconds"]
	if n := len(v.infos); n > 0 && !timed {
		last := &v.infos[n-1]
		if overlap(last.fields.Numbers, i.fields.Numbers) || overlap(last.fields.Text, i.fields.Text) {
			v.undated++
			return
		}
		last.text += "\n" + text
		last.fields = told.ParseInfo(last.text)
		return
	}
	v.infos = append(v.infos, i)
}

// overlap reports whether both have a name.
func overlap[V any](a, b map[string]V) bool {
	for name := range b {
		if _, twice := a[name]; twice {
			return true
		}
	}
	return false
}

// done gives the servers their names. Texts that say nothing of whose they are belong to the only server there is.
func (g *groups) done() []*server {
	known := slices.DeleteFunc(slices.Clone(g.servers), func(v *server) bool {
		return v.runID == "" && v.address == ""
	})
	if len(known) <= 1 && len(g.servers) > 1 {
		into := g.servers[0]
		if len(known) == 1 {
			into = known[0]
		}
		for _, v := range g.servers {
			if v != into {
				into.merge(v)
			}
		}
		g.servers = []*server{into}
	}
	for i, v := range g.servers {
		v.identify(i)
	}
	return g.servers
}

func (v *server) merge(o *server) {
	for _, i := range o.infos {
		v.info(i.text)
	}
	v.slowlogs, v.latests = append(v.slowlogs, o.slowlogs...), append(v.latests, o.latests...)
	v.histories, v.clients = append(v.histories, o.histories...), append(v.clients, o.clients...)
	v.configs, v.doctor = append(v.configs, o.configs...), append(v.doctor, o.doctor...)
	v.undated += o.undated
}

// identify names a server: by the address of a prompt, else with its port alone.
func (v *server) identify(i int) {
	host, port := "HOST", "PORT"
	if i > 0 {
		host = fmt.Sprintf("HOST%d", i+1)
	}
	v.kind = "unknown"
	for _, in := range v.infos {
		if p := in.fields.Numbers["tcp_port"]; p > 0 && p < 1<<16 {
			port = fmt.Sprintf("%.0f", p)
		}
		v.product = cmp.Or(v.product, in.fields.Product())
		switch mode := cmp.Or(in.fields.Text["redis_mode"], in.fields.Text["server_mode"]); mode {
		case "standalone", "cluster":
			v.kind = mode
		}
	}
	v.name = cmp.Or(v.address, host+":"+port)
}

// seconds are the times of what the server logged, since the Unix epoch.
func (v *server) seconds() (out []int64) {
	for _, r := range slices.Concat(v.slowlogs, v.latests) {
		out = append(out, told.Seconds(r)...)
	}
	for _, h := range v.histories {
		out = append(out, told.Seconds(h.value)...)
	}
	return slices.DeleteFunc(out, func(s int64) bool { return s < firstSecond || s >= lastSecond })
}

// date finds out when each reply to INFO was made: by the server's clock where it has that (7.0), else by its uptime
// and the newest time that the texts have.
func (v *server) date() (untilNs int64) {
	newest := int64(0)
	for _, s := range v.seconds() {
		newest = max(newest, (s+2)*1e9)
	}
	beganNs, uptime := int64(0), int64(0)
	for i := range v.infos {
		in := &v.infos[i]
		up := in.uptime()
		uptime = max(uptime, up)
		if usec := in.fields.Numbers["server_time_usec"]; usec > firstSecond*1e6 && usec < lastSecond*1e6 {
			in.ns = int64(usec) * 1000
			beganNs = in.ns - up*1e9
		}
		if saved := in.fields.Numbers["rdb_last_save_time"]; saved > firstSecond && saved < lastSecond {
			newest = max(newest, int64(saved+1)*1e9)
		}
	}
	if beganNs == 0 {
		beganNs = max(newest-uptime*1e9, 1)
	}
	for i := range v.infos {
		in := &v.infos[i]
		if in.ns == 0 {
			in.ns = beganNs + in.uptime()*1e9
		}
		newest = max(newest, in.ns)
	}
	slices.SortStableFunc(v.infos, func(a, b infoAt) int { return cmp.Compare(a.ns, b.ns) })
	// of two of the same second the later one counts
	for i := len(v.infos) - 2; i >= 0; i-- {
		if v.infos[i].ns == v.infos[i+1].ns {
			v.infos = slices.Delete(v.infos, i, i+1)
		}
	}
	return max(newest, 1)
}

// write records what the texts say of the server, and gives the time that they are of.
func (v *server) write(sink recording.Sink) (fromNs, toNs int64) {
	toNs = v.date()
	fromNs = toNs
	t := told.NewTold(v.name, sink)
	for _, c := range v.configs {
		t.Config(c)
	}
	t.Settings(toNs)
	for i, in := range v.infos {
		fromNs = min(fromNs, in.ns)
		t.Info(in.ns, in.text, i == len(v.infos)-1)
	}
	v.slow = t.Slowlog(toNs, v.slowlogs)
	for _, h := range v.histories {
		t.Latency(h.event, h.value)
	}
	for _, l := range v.latests {
		t.Latest(l)
	}
	for _, c := range v.clients {
		t.Clients(toNs, c)
	}
	for _, d := range v.doctor {
		t.Doctor(toNs, d)
	}
	for _, s := range v.seconds() {
		fromNs = min(fromNs, s*1e9)
	}
	return fromNs, toNs
}

// missing is what the texts do not have, with the command that prints it.
func (v *server) missing() (out []recording.BlindSpot) {
	add := func(there bool, what, why, enable string) {
		if !there {
			out = append(out, recording.BlindSpot{What: what, Why: why, Enable: enable})
		}
	}
	const none = "it is not in the texts"
	add(len(v.infos) > 0, told.OwnCounters, none, "redis-cli INFO all")
	add(len(v.infos) != 1, "what the counters of INFO did while calls were slow", "there is one INFO: its counters "+
		"are sums since the server began", "INFO all twice, a minute apart, while calls are slow")
	add(v.undated == 0, fmt.Sprintf("%d replies to INFO", v.undated),
		"they have no uptime_in_seconds: it is not known when they were made", "redis-cli INFO all")
	add(len(v.slowlogs) > 0, "slow commands by name (SLOWLOG)", none, "redis-cli SLOWLOG GET 128")
	add(len(v.latests)+len(v.histories)+len(v.doctor) > 0, "stalls that the server noticed itself (LATENCY)", none,
		"redis-cli LATENCY LATEST, where latency-monitor-threshold is set")
	add(len(v.clients) > 0, "who the server's clients are (CLIENT LIST)", none, "redis-cli CLIENT LIST")
	add(len(v.configs) > 0, "the server's settings (CONFIG GET)", none, "redis-cli CONFIG GET '*'")
	add(false, "what calls take, and what they wait for", "the texts have no calls: network, clients and the server's "+
		"host are not in them", "slowpath doctor "+v.name+", best as root on the server's host, while calls are slow")
	return out
}
