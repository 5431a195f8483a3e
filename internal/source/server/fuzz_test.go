package server

import (
	"strings"
	"testing"
)

// FuzzText: INFO and CLIENT LIST as texts, where FuzzReplies spends most of its time on the protocol.
func FuzzText(f *testing.F) {
	f.Add("# Server\r\nredis_version:7.0.15\r\nuptime_in_seconds:10\r\n# Commandstats\r\n" +
		"cmdstat_get:calls=1,usec=2,usec_per_call=2.00,rejected_calls=0,failed_calls=0\r\n")
	f.Add("# Replication\r\nrole:master\r\nslave0:ip=10.0.0.1,port=1,state=online,offset=1,lag=0\r\n")
	f.Add("# Errorstats\r\nerrorstat_ERR:count=1\r\n# Latencystats\r\n" +
		"latency_percentiles_usec_get:p50=1.003,p99=5.023\r\n")
	f.Add("id=3 addr=127.0.0.1:54554 laddr=127.0.0.1:6379 fd=8 name=a age=5 idle=0 flags=N db=0 sub=0 psub=0 " +
		"multi=-1 qbuf=26 qbuf-free=20448 argv-mem=10 obl=0 oll=0 omem=0 tot-mem=22298 events=r " +
		"cmd=client|list user=default redir=-1 resp=2\n")
	f.Add("id=-1 age=99999999999999999999 cmd=NULL omem=1e400\n")
	f.Fuzz(func(t *testing.T, text string) {
		in := parseInfo(text)
		if len(in.text) > len(text) {
			t.Errorf("%d fields of %d bytes", len(in.text), len(text))
		}
		identityOf(in)
		jsonObject(in.text)
		ParseInfo(text)
		clients := ParseClients(text)
		if lines := strings.Count(text, "\n") + 1; len(clients) > lines {
			t.Errorf("%d clients of %d lines", len(clients), lines)
		}
		if lines := clientLines(clients); strings.ContainsAny(lines, "\x00\x1b\r") {
			t.Errorf("control characters: %q", lines)
		}
		countClients(clients)
	})
}
