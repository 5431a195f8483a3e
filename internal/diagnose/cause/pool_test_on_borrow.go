package cause

import (
	"fmt"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
)

// poolTestOnBorrow: the pool asks PING before it hands out a connection: each call takes two round trips. Catalogue B6.
var poolTestOnBorrow = Cause{
	ID:    "pool-test-on-borrow",
	Title: "The client's pool tests each connection with PING before a call: two round trips in place of one",
	Layer: "client",
	Needs: Needs{
		T0: "commandstats: ping nearly as often as all other commands",
		T2: "the PINGs of the callers on this host, and their time",
	},
	Explain: explainBorrowPings,
}

// Bounds of tests. A health check or a keepalive asks once in some seconds per connection, a test with each use. One
// test belongs to one use at least, so that more PINGs than other commands are something else: a monitor, a benchmark.
const (
	pingsSome = 0.1  // of the other commands (catalogue B6)
	pingsMost = 1.05 // of them; clocks of two counters
	pingsRate = 5.0  // per second
)

// pings compares PING with what callers ask for.
type pings struct {
	count, others    float64
	pingNs, othersNs int64 // all together; 0 where only the server counted
	source           string
}

// share is the part of the callers' time that goes into PING.
func (p pings) share() float64 {
	if p.pingNs > 0 {
		return float64(p.pingNs) / float64(p.pingNs+p.othersNs)
	}
	return p.count / (p.count + p.others)
}

func explainBorrowPings(n *Node) *Finding {
	p, ok := n.borrowPings()
	if !ok {
		return nil
	}
	f := &Finding{Of: len(n.Ledger.Slow), Confidence: 0.75, ExcessShare: p.share()}
	if p.pingNs > 0 {
		l := n.losses(n.callers())
		f.ExcessShare = float64(p.pingNs) / float64(l.openingNs+l.givenUpNs+l.pingNs+l.lookupNs+l.excessNs)
	}
	f.support(p.source, fmt.Sprintf("the callers send %.0f PINGs for %.0f other commands (%.0f %%), %.3g per second; "+
		"slowpath's own are not counted", p.count, p.others, p.count*100/p.others, p.count/n.Seconds()), p.count,
		"calls")
	if p.pingNs > 0 {
		f.Confidence = 0.92
		f.support(p.source, fmt.Sprintf("a PING takes %s, another command %s: PINGs are %.0f %% of what the callers "+
			"wait for", dur(p.pingNs/int64(p.count)), dur(p.othersNs/int64(p.others)), p.share()*100), p.share(),
			"of the time")
		if callers := n.callers(); len(callers) > 0 {
			f.support(recording.SourceTap, fmt.Sprintf("the callers are %s, with up to %d connections",
				callerNames(callers), callers[0].atOnce()), float64(len(callers)), "callers")
		}
	} else {
		f.doubt(p.source, "whether each PING goes before a call of the same connection was not seen", 0, "")
	}
	f.Fix = n.library(map[string]string{
		"redigo": "redigo: in TestOnBorrow, return nil where the connection was used within the last minute: if " +
			"time.Since(lastUsed) < time.Minute { return nil }",
		"jedis":    "Jedis: setTestOnBorrow(false), setTestWhileIdle(true) (its default)",
		"redis-py": "redis-py: health_check_interval=30 tests only what was idle for so long",
		"lettuce":  "Lettuce, Spring Data Redis: LettuceConnectionFactory.setValidateConnection(false)",
		"redis-ruby": "Others: test what lay idle, not each use; a call that fails on a dead connection is tried " +
			"again anyway",
	}, "redigo", "jedis", "redis-py", "lettuce", "redis-ruby")
	f.See = []string{
		"https://pkg.go.dev/github.com/gomodule/redigo/redis#Pool",
		"https://commons.apache.org/proper/commons-pool/api-2.12.0/org/apache/commons/pool2/impl/BaseObjectPoolConfig.html",
	}
	return f
}

// borrowPings compares the callers' PINGs with their other commands: by what the kernel saw at their end, else by
// commandstats.
func (n *Node) borrowPings() (pings, bool) {
	p := n.tapPings()
	if p.count+p.others == 0 {
		p = n.countedPings()
	}
	ok := p.count >= pingsSome*p.others && p.count <= pingsMost*p.others && p.count >= pingsRate*n.Seconds()
	return p, ok
}

// tapPings reads the histograms of all calls of clients on this host. Those of handshakes are not what a pool tests,
// and what has no name under TLS may be either.
func (n *Node) tapPings() pings {
	p := pings{source: recording.SourceTap}
	for _, h := range n.Rec.Histograms {
		op, ok := strings.CutPrefix(h.Op, recording.Client+" ")
		if h.Source != recording.SourceTap || h.Node != n.Address || !ok {
			continue
		}
		count, ns := histogramSum(h.HDR)
		switch {
		case op == "PING":
			p.count, p.pingNs = p.count+count, p.pingNs+ns
		case op != "?" && !introduces(op):
			p.others, p.othersNs = p.others+count, p.othersNs+ns
		}
	}
	return p
}

// introduces reports whether a command is one by which connections introduce themselves.
func introduces(op string) bool {
	switch op {
	case "AUTH", "HELLO", "SELECT", "READONLY":
		return true
	}
	return strings.HasPrefix(op, "CLIENT ") || strings.HasPrefix(op, "COMMAND")
}

// histogramSum is the number of the calls of a histogram, and their time in nanoseconds.
func histogramSum(hdr []byte) (count float64, ns int64) {
	h, err := hdrhistogram.Decode(hdr)
	if err != nil {
		return 0, 0
	}
	return float64(h.TotalCount()), int64(h.Mean() * float64(h.TotalCount()))
}

// countedPings reads commandstats.
func (n *Node) countedPings() pings {
	p := pings{source: recording.SourceServer}
	var ownPings, ownOthers float64
	if s := n.Info("total_commands_processed"); len(s) > 1 {
		for _, c := range n.Rec.Calls {
			if c.Source != recording.SourceProbe || c.Node != n.Address || c.StartNs < s[0].TimeNs ||
				c.StartNs >= s[len(s)-1].TimeNs {
				continue
			}
			if c.Op == "PING" {
				ownPings++
			} else {
				ownOthers++
			}
		}
	}
	p.count = max(n.Growth("cmdstat_ping.calls")-ownPings, 0)
	for _, name := range n.Rec.Names(recording.SourceServer, n.Address, "cmdstat_") {
		if base, ok := strings.CutSuffix(name, ".calls"); ok && dataCommand(strings.TrimPrefix(base, "cmdstat_")) {
			p.others += n.Growth(name)
		}
	}
	p.others = max(p.others-ownOthers, 0)
	return p
}

// dataCommand: not PING, not of a handshake, and not what slowpath and monitors ask.
func dataCommand(name string) bool {
	base, _, _ := strings.Cut(name, "|")
	switch base {
	case "ping", "auth", "hello", "select", "readonly", "client", "command", "info", "slowlog", "latency", "config",
		"cluster", "memory", "acl", "replconf", "psync", "role":
		return false
	}
	return true
}
