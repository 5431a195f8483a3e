package codis

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"slowpath/internal/wire/resp"
)

// session is the connection of a client.
type session struct {
	proxy   *Proxy
	conn    net.Conn
	server  *server // answers what has no key
	replies chan answer
}

// answer is a reply that may not be there yet.
type answer interface {
	ready() bool
	bytes() []byte // waits for it
}

// said is an answer of the proxy itself.
type said []byte

func (s said) ready() bool   { return true }
func (s said) bytes() []byte { return s }

// refusal begins the error replies of the proxy itself, as in Codis.
const refusal = "ERR handle request, "

func failure(format string, args ...any) said {
	return fmt.Appendf(nil, "-"+refusal+format+"\r\n", args...)
}

// unanswered is how many requests of a client may wait for replies (Codis: session_max_pipeline 10000).
const unanswered = 10_000

func newSession(p *Proxy, conn net.Conn) *session {
	return &session{
		proxy: p, conn: conn, server: p.servers[rand.IntN(len(p.servers))],
		replies: make(chan answer, unanswered),
	}
}

// serve answers requests in their order until the client closes the connection.
func (s *session) serve() {
	var writer sync.WaitGroup
	writer.Go(s.write)
	in := resp.NewReader(s.conn, resp.DefaultLimits)
	for {
		v, err := in.Read()
		if err != nil || !isCommand(v) {
			break
		}
		name := strings.ToUpper(string(v.Elems[0].Str))
		if name == "QUIT" {
			s.replies <- said("+OK\r\n")
			break
		}
		s.replies <- s.answer(name, v)
	}
	close(s.replies)
	writer.Wait()
}

func isCommand(v resp.Value) bool {
	if v.Kind != resp.Array || len(v.Elems) == 0 {
		return false
	}
	for _, e := range v.Elems {
		if e.Kind != resp.BulkString {
			return false
		}
	}
	return true
}

// write writes replies, many at a time where they are there.
func (s *session) write() {
	var out []byte
	failed := false
	flush := func() {
		if _, err := s.conn.Write(out); err != nil && !failed {
			failed = true
			s.conn.Close() // serve ends, too
		}
		out = out[:0]
	}
	for a := range s.replies {
		if !a.ready() && len(out) > 0 {
			flush()
		}
		if out = append(out, a.bytes()...); len(s.replies) == 0 || len(out) >= writeBytes {
			flush()
		}
	}
}

// answer sends a request where it belongs.
func (s *session) answer(name string, v resp.Value) answer {
	args := v.Elems[1:]
	switch {
	case name == "SLOTSOWNERS":
		return said(s.proxy.owners())
	case name == "SLOTSMIGRATE":
		return s.startMigration(args)
	case name == "SELECT":
		if len(args) == 1 && string(args[0].Str) == "0" {
			return said("+OK\r\n")
		}
		return failure("the stand-in has database 0 alone")
	case refused[name]:
		return failure("command '%s' is not allowed", name)
	case keyless[name]:
		r := newRequest(resp.AppendValue(nil, v))
		s.proxy.send(s.server, r)
		return r
	case len(args) > keyStep(name) && split[name] != nil:
		return s.split(name, args)
	}
	at := keyIndex(name)
	if at >= len(v.Elems) {
		return failure("command '%s' has no key", name)
	}
	r := newRequest(resp.AppendValue(nil, v))
	s.proxy.forward(v.Elems[at].Str, r)
	return r
}

// split asks for each key alone, since their servers may be different ones.
func (s *session) split(name string, args []resp.Value) answer {
	step := keyStep(name)
	if len(args)%step != 0 {
		return failure("wrong number of arguments for '%s'", name)
	}
	p := parts{merge: split[name]}
	for i := 0; i < len(args); i += step {
		r := newRequest(resp.AppendValue(nil, resp.Value{
			Kind: resp.Array, Elems: append([]resp.Value{bulk(name)}, args[i:i+step]...),
		}))
		s.proxy.forward(args[i].Str, r)
		p.requests = append(p.requests, r)
	}
	return p
}

// keyStep is the number of arguments for each key of a command that is split.
func keyStep(name string) int {
	if name == "MSET" {
		return 2
	}
	return 1
}

// keyIndex is the index of the first key of a command.
func keyIndex(name string) int {
	switch name {
	case "EVAL", "EVALSHA", "FCALL", "FCALL_RO", "EVAL_RO", "EVALSHA_RO",
		"ZINTERSTORE", "ZUNIONSTORE": // as Codis: the first of those that are read
		return 3
	case "LMPOP", "ZMPOP", "SINTERCARD", "ZINTERCARD", "ZUNION", "ZINTER", "ZDIFF":
		return 2
	}
	return 1
}

// parts are the requests that a command was split into.
type parts struct {
	requests []*request
	merge    func(replies [][]byte) []byte
}

func (p parts) ready() bool {
	return !slices.ContainsFunc(p.requests, func(r *request) bool { return !r.ready() })
}

func (p parts) bytes() []byte {
	replies := make([][]byte, len(p.requests))
	for i, r := range p.requests {
		replies[i] = r.bytes()
	}
	for _, r := range replies {
		if r[0] == '-' {
			return r
		}
	}
	return p.merge(replies)
}

// split has the commands that are asked for each key alone, and how their replies become one.
var split = map[string]func(replies [][]byte) []byte{
	"MGET": func(replies [][]byte) []byte {
		out := fmt.Appendf(nil, "*%d\r\n", len(replies))
		for _, r := range replies {
			out = append(out, bytes.TrimPrefix(r, []byte("*1\r\n"))...)
		}
		return out
	},
	"MSET": func([][]byte) []byte { return []byte("+OK\r\n") },
	"DEL":  sum, "UNLINK": sum, "EXISTS": sum, "TOUCH": sum,
}

func sum(replies [][]byte) []byte {
	total := 0
	for _, r := range replies {
		n, _ := strconv.Atoi(string(bytes.TrimSpace(r[1:])))
		total += n
	}
	return fmt.Appendf(nil, ":%d\r\n", total)
}

func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(text) {
		out[w] = true
	}
	return out
}

// keyless are answered by one server, drawn for each connection. Codis draws one for each call, so that the counters of
// INFO jump.
var keyless = words("PING ECHO INFO COMMAND ROLE PUBSUB")

// refused are not passed on: Codis refuses most of them, and a server of its version does not know the others. They
// would change the state of the connection that all clients share, block it, or need several servers.
var refused = words(`
	AUTH HELLO RESET ACL CLUSTER READONLY READWRITE ASKING MODULE FUNCTION SWAPDB FAILOVER WAIT WAITAOF
	BGREWRITEAOF BGSAVE BITOP BLPOP BRPOP BRPOPLPUSH BLMOVE BLMPOP BZPOPMIN BZPOPMAX BZMPOP CLIENT CONFIG DBSIZE DEBUG
	DISCARD EXEC FLUSHALL FLUSHDB KEYS LASTSAVE LATENCY MEMORY MIGRATE MONITOR MOVE MSETNX MULTI OBJECT PSUBSCRIBE
	PSYNC PUBLISH PUNSUBSCRIBE RANDOMKEY RENAME RENAMENX REPLCONF REPLICAOF RESTORE SAVE SCAN SCRIPT SHUTDOWN SLAVEOF
	SLOWLOG SPUBLISH SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE SYNC TIME UNSUBSCRIBE UNWATCH WATCH XGROUP XINFO XREAD
	XREADGROUP`)
