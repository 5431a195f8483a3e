//go:build linux

package main

import (
	"net"
	"path/filepath"
	"strings"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// asking are the commands that speak to a server, for a short time.
var asking = []struct{ name, line string }{
	{"doctor", "slowpath doctor $PEER --for 500ms --timeout 1s"},
	{"probe", "slowpath probe $PEER --for 500ms --timeout 1s"},
	{"bench", "slowpath bench $PEER --for 500ms --call-timeout 1s"},
	{"record", "slowpath record $PEER --for 500ms --timeout 1s -o x.slowpath"},
	{"topology", "slowpath topology $PEER --timeout 1s --call-timeout 1s"},
	{"topology watch", "slowpath topology watch $PEER --for 500ms"},
}

// strangers are fakes that are no Redis, with what every command says of them before it ends with 3.
var strangers = []struct{ fake, says string }{
	{"http", "speaks HTTP"},
	{"ssh", "speaks SSH"},
	{"memcache", "memcached"},
	{"tls", "closed the connection before its first reply; it may speak TLS"},
	{"hang", "reply to CLIENT"},
	{"drip", "reply to CLIENT"},
	{"attributes", "reply to CLIENT"},
	{"closes", "closed the connection before its first reply"},
	{"reads", "closed the connection before its first reply"},
	{"resets", "closed the connection before its first reply"},
	{"reset", "accepts and resets the connection|closed the connection before its first reply"},
	{"middle", "closed in the middle of the reply"},
	{"huge", "too many elements"},
	{"bulk", "bulk string of 1000000000 bytes, the limit is"},
	{"line", "a line of more than 65536 bytes"},
	{"negative", `bulk string of size "-5"`},
	{"overflow", `bulk string of size "99999999999999999999"`},
	{"deep", "nested too deeply: more than 32 levels"},
	{"garbage", "unknown type byte"},
	{"endless", "unknown type byte"},
	{"zeros", "unknown type byte"},
	{"newlines", "unknown type byte"},
	{"noauth", "wants a password; give -a"},
	{"denied", "protected mode"},
}

// strangerCases: each command and each peer that is no Redis, or does not let anybody in. The suite has each peer once.
func strangerCases() []faultCase {
	var all []faultCase
	for i, s := range strangers {
		for k, a := range asking {
			all = append(all, faultCase{
				family: "strangers", name: a.name + " " + s.fake, quick: (i+k)%len(asking) == 0,
				before: func(r *faultRun) { r.serve("PEER", s.fake) },
				line:   a.line, codes: "3", says: s.says,
			})
		}
		if s.fake == "hang" || s.fake == "garbage" || s.fake == "closes" {
			all = append(all, faultCase{
				family: "strangers", name: "probe --tls " + s.fake, quick: s.fake == "garbage",
				before: func(r *faultRun) { r.serve("PEER", s.fake) },
				line:   "slowpath probe $PEER --tls --insecure --timeout 1s", codes: "3", says: "TLS",
			})
		}
	}
	for _, fake := range []string{"http", "closes", "garbage", "endless", "nothing"} {
		all = append(all, faultCase{
			family: "strangers", name: "bucket " + fake, quick: fake == "http",
			before: func(r *faultRun) {
				r.serve("PEER", fake)
				r.set("AWS_ACCESS_KEY_ID", "k")
				r.set("AWS_SECRET_ACCESS_KEY", "s")
				r.set("XDG_CACHE_HOME", filepath.Join(r.dir, "tmp"))
			},
			line:  "slowpath fleet s3://incidents why --endpoint http://$PEER",
			codes: "3", says: "s3://incidents/ cannot be read: it ",
		}, faultCase{
			family: "strangers", name: "Prometheus " + fake, quick: fake == "garbage",
			before: func(r *faultRun) { r.serve("PEER", fake) },
			line:   "slowpath fleet prometheus://$PEER worst",
			codes:  "3", says: "Prometheus does not answer: prometheus://",
		})
	}
	return append(all, faultCase{
		family: "strangers", name: "nothing listens", quick: true,
		before: func(r *faultRun) { r.serve("PEER", "nothing") },
		line:   asking[0].line, codes: "3", says: "connection refused: nothing listens",
	})
}

// refusing are fakes that answer all requests with the same reply: what each command of asking says, after its exit
// code.
var refusing = []struct {
	fake string
	says []string
}{
	{"errors", []string{
		// on a busy machine there are fewer calls, a finding leads, and the line of the calls says it
		"0|1 [1-9][0-9]* of slowpath's own calls \\(ERR\\)|own calls: [0-9]+ of [0-9]+ slow, [1-9][0-9]* failed",
		"0 errors: [0-9]+ x ERR", "0 errors|ERR", "0 recorded in",
		"3 no map of the cluster", "3 CLUSTER NODES of .*ERR no",
	}},
	{"loading", []string{
		"1 loading its data", "0 errors: [0-9]+ x LOADING", "0 LOADING", "0 recorded in", "3 LOADING",
		"3 loading its data",
	}},
	{"full", []string{
		"1 maxclients is reached", "3 maxclients is reached", "3 maxclients is reached", "0 recorded in",
		"3 maxclients is reached", "3 maxclients is reached",
	}},
	{"yes", []string{
		"3 so it is not Redis", "3 so it is not Redis", "3 so it is not Redis", "3 so it is not Redis",
		"3 malformed .*is this a node of a cluster", "3 malformed .*is this a node of a cluster",
	}},
	{"integer", []string{
		"3 so it is not Redis", "3 so it is not Redis", "3 so it is not Redis", "3 so it is not Redis",
		"3 no map of the cluster", "3 malformed .*is this a node of a cluster",
	}},
	{"null", []string{
		"3 so it is not Redis", "3 so it is not Redis", "3 so it is not Redis", "3 so it is not Redis",
		"3 no map of the cluster", "2 not a cluster: .*names no node",
	}},
	{"map", []string{
		"3 so it is not Redis", "3 so it is not Redis", "3 so it is not Redis", "3 so it is not Redis",
		"3 no map of the cluster", "2 not a cluster: .*names no node",
	}},
	{"message", []string{
		"3 so it is not Redis", "3 so it is not Redis", "3 so it is not Redis", "3 so it is not Redis",
		"3 no map of the cluster", "2 not a cluster: .*names no node",
	}},
}

func refusingCases() []faultCase {
	var all []faultCase
	for i, s := range refusing {
		for k, a := range asking {
			code, says, _ := strings.Cut(s.says[k], " ")
			c := faultCase{
				family: "refusing servers", name: a.name + " " + s.fake, quick: (i+k)%len(asking) == 0,
				before: func(r *faultRun) { r.serve("PEER", s.fake) },
				line:   a.line, codes: code, says: says,
			}
			if a.name == "record" && code == "0" {
				c.leaves = []string{"x.slowpath"}
			}
			all = append(all, c)
		}
	}
	return all
}

// breaks are what becomes of a connection to a real server after some requests.
var breaks = []string{
	"closes", "hang", "garbage", "endless", "bulk", "line", "resets", "negative", "huge", "attributes",
	"integer", "errors", "null", "drip", "overflow", "deep", "message",
}

// breakingCases: each command and a real server, of which each connection breaks after some requests. What is said
// depends on which request that is: a verdict, a table, or an error of the server.
func breakingCases() []faultCase {
	var all []faultCase
	for i, kind := range breaks {
		for k, a := range asking {
			c := faultCase{
				family: "servers that break", name: a.name + " " + kind, quick: (i+k)%len(asking) == 0 && i%2 == 0,
				before: func(r *faultRun) {
					server := r.server
					if strings.HasPrefix(a.name, "topology") {
						server = r.clusterNode
					}
					r.listen("PEER", breaking(server().Addr, 2+i%5, fakes[kind]))
				},
				line: a.line, codes: "0|1|3", says: `127\.|recorded in|(?m)^in [0-9.]+m?s: `, lines: 4,
			}
			if a.name == "record" {
				c.leaves = []string{"x.slowpath"}
			}
			all = append(all, c)
		}
	}
	return all
}

// server starts a server.
func (r *faultRun) server() *fleet.Instance {
	r.Helper()
	return fleettest.Start(r, servers.Redis7015, fleet.Spec{})
}

// clusterNode starts a node of a cluster, of which no other node runs.
func (r *faultRun) clusterNode() *fleet.Instance {
	r.Helper()
	return fleettest.StartMap(r, servers.Redis7015, fleet.MapSpec{Masters: 2}, fleet.Spec{})
}

// breaking passes so many requests to a server; then it breaks the connection.
func breaking(server string, requests int, how func(net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		behind, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer behind.Close()
		request, reply := make([]byte, 64<<10), make([]byte, 1<<20)
		for range requests {
			if !pass(c, behind, request) || !pass(behind, c, reply) {
				return
			}
		}
		how(c)
	}
}

// pass passes what comes next.
func pass(from, to net.Conn, b []byte) bool {
	n, err := from.Read(b)
	if err != nil {
		return false
	}
	_, err = to.Write(b[:n])
	return err == nil
}

// serve starts a fake, and sets a variable to its address.
func (r *faultRun) serve(name, fake string) {
	r.Helper()
	if fake == "nothing" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.Fatal(err)
		}
		r.set(name, l.Addr().String())
		l.Close()
		return
	}
	if fakes[fake] == nil && fake != "tls" {
		r.Fatalf("no fake %q", fake)
	}
	if fake == "tls" {
		r.listen(name, speakTLS)
		return
	}
	r.listen(name, fakes[fake])
}
