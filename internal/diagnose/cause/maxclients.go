package cause

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// maxClients: the limit is reached, and each new client gets an error and is closed (networking.c,
// acceptCommonHandler).
var maxClients = Cause{
	ID:      "maxclients",
	Changes: []string{"maxclients", "timeout"},
	Explain: explainMaxClients,
}

func explainMaxClients(n *facts.Node) *Finding {
	refused := nodes.MaxclientsRefusals(n)
	rejected := n.Growth(series.RejectedConnections)
	if refused == 0 && rejected == 0 {
		return nil
	}
	f := finding(n, n.Claim(func(_ account.Account, s account.Segment) bool {
		return facts.IsUnexplainedWait(s) && s.Actor != account.Server || s.State == account.Dial
	}))
	// A refused caller gets nothing at all: the share of the refused connections.
	share := rejected / max(rejected+n.Growth(series.TotalConnectionsReceived), 1)
	if refused > 0 {
		f.support(recording.SourceProbe, float64(refused), "connections",
			"%d of slowpath's own connections were refused: max number of clients reached", refused)
		fresh := 0
		for _, c := range n.Rec.Calls {
			if c.Node == n.Address && c.Conn == "fresh" {
				fresh++
			}
		}
		share = max(share, float64(refused)/float64(max(fresh, refused)))
	}
	f.loseBeside(n, facts.LostWaiting, share, facts.HealthyMaxNs)
	if rejected > 0 {
		f.support(recording.SourceServer, rejected, "connections", "the server refused %s during the watch "+
			"(rejected_connections), %.1f per second", counted(rejected, "connection"), rejected/n.Seconds())
	}
	limit := clientLimit(n)
	if connected, ok := n.Series(series.ConnectedClients).Max(); ok && limit > 0 {
		f.support(recording.SourceServer, connected, "clients",
			"%s connected, maxclients is %d", counted(connected, "client"), limit)
	}
	files, _ := n.Series(series.FDLimit).Last()
	used, ok := n.Series(series.FDs).Max()
	if ok {
		f.support(recording.SourceHost, used, "files",
			"the process has %s, its limit is %s", counted(used, "open file"), format.Thousands(files))
	}
	f.supportTurnedAway(n)
	f.blameCrowds(caller.Crowds(n))
	if who := crowdOf(n); who != "" {
		f.support(recording.SourceServer, 0, "", "most connections come from %s", who)
	}
	f.FixSteps = maxClientsFix(n, limit, int(files))
	return f
}

// supportTurnedAway says of which clients the server closed connections without answering a command.
func (f *Finding) supportTurnedAway(n *facts.Node) {
	away, who := 0, map[string]int64{}
	for e := range n.Rec.Conns(n.Address, recording.KindClose) {
		if e.Side == recording.Client && e.By == recording.Server && e.Calls == 0 && e.AgeNs > 0 {
			away++
			who[hosts.ProcessName(n.Case, e.PID, e.Comm)]++
		}
	}
	if away > 0 {
		f.support(recording.SourceTap, float64(away), "connections", "the server closed %s of clients on this host "+
			"before the first reply, most of %s", counted(away, "connection"), facts.KeysByValue(who)[0])
	}
}

// clientLimit is maxclients: INFO has it since 6.2.
func clientLimit(n *facts.Node) int {
	if v, ok := n.Series(series.MaxClients).Last(); ok {
		return int(v)
	}
	return n.ConfigInt("maxclients")
}

// blameCrowds adds who has so many connections that there are few for others.
func (f *Finding) blameCrowds(crowds []caller.Crowd) {
	all := 0
	for _, c := range crowds {
		all += c.Connections
	}
	for _, c := range crowds {
		if float64(c.Connections) >= degree.Part*float64(all) {
			f.Blame(c.Who.Culprit(fmt.Sprintf("%d of %s", c.Connections, format.Count(all, "connection"))))
		}
	}
}

// crowdOf names the callers with the most connections: by CLIENT LIST and the host, else the hosts that the server
// counted.
func crowdOf(n *facts.Node) string {
	if crowds := caller.Crowds(n); len(crowds) > 0 {
		return caller.CrowdsText(crowds, 3)
	}
	s, ok := n.Rec.SnapshotOf(recording.SourceServer, n.Address, "clients-summary")
	var counts struct {
		Host map[string]int64 `json:"host"`
	}
	if !ok || json.Unmarshal([]byte(s.Body), &counts) != nil {
		return ""
	}
	var out []string
	for _, h := range facts.KeysByValue(counts.Host) {
		out = append(out, fmt.Sprintf("%s (%d)", h, counts.Host[h]))
	}
	return strings.Join(out[:min(len(out), degree.Listed)], ", ")
}

// spareFiles are the descriptors that the server keeps for itself (server.c, CONFIG_MIN_RESERVED_FDS).
// Bound: server, CONFIG_MIN_RESERVED_FDS.
const spareFiles = 32

// defaultMaxClients is at least advised.
// Bound: server, the default of maxclients (CONFIG_DEFAULT_MAX_CLIENTS).
const defaultMaxClients = 10_000

func maxClientsFix(n *facts.Node, limit, files int) []remedy.Step {
	fix := append([]remedy.Step{raiseMaxClients(n, max(defaultMaxClients, 2*limit), files)}, closeIdle(n)...)
	smaller := inApplication(string(remedy.SmallerPool), "Keep pool size × processes below maxclients, with room for "+
		"a rolling deployment (twice the processes) and for operators")
	return append(fix, smaller)
}

// raiseMaxClients is with a higher limit of open files where that of the process is too low: the server raises it no
// further than the hard limit.
func raiseMaxClients(n *facts.Node, want, files int) remedy.Step {
	s := remedy.ConfigSet(n, "more-clients", "maxclients", strconv.Itoa(want), "Let more clients connect. The server "+
		"refuses redis-cli, too, so the command first closes the connection of one client, up to five times")
	s = s.Risking("a client whose connection is closed must open a new one")
	s.Command, s.Where = afterOneClosed(n, s.Command), "on the server's host"
	if files == 0 || files >= want+spareFiles {
		return s
	}
	s.Text += fmt.Sprintf(". It lets the process, which may open %d files, open enough for them: to keep that, set "+
		"LimitNOFILE=%d in its unit (or ulimit -n)", files, want+spareFiles)
	pid := "<the pid of the server>"
	if p := hosts.ServerPID(n); p > 0 {
		pid = strconv.Itoa(p)
	}
	s.Command = fmt.Sprintf("prlimit --pid %s --nofile=%d:%d && %s", pid, want+spareFiles, want+spareFiles, s.Command)
	return s
}

// afterOneClosed repeats a command until the server takes it; before each time it closes a connection of a client, in
// the server's network namespace. CONFIG_INET_DIAG_DESTROY, which that needs, is set in the kernels of distributions.
func afterOneClosed(n *facts.Node, command string) string {
	_, port, err := net.SplitHostPort(n.Address)
	if err != nil {
		return command
	}
	ss := "ss"
	if pid := hosts.ServerPID(n); pid > 0 {
		ss = fmt.Sprintf("nsenter -t %d -n ss", pid)
	}
	of := fmt.Sprintf("state established '( sport = :%s )'", port)
	return fmt.Sprintf(`for i in 1 2 3 4 5; do %s -Kt %s dst "$(%s -Htn %s | awk 'NR == 1 { print $4 }')" >/dev/null; `+
		"%s | grep OK && break; done", ss, of, ss, of, command)
}
