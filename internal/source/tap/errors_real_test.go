//go:build linux

package tap

import (
	"maps"
	"testing"

	"github.com/cilium/ebpf"

	"slowpath/internal/house/needs"
)

// TestErrorRepliesAreCounted: error replies are counted by command and first word, whichever way their bytes are read:
// one by one, pipelined, and among other replies. What an application's script makes up is no name.
func TestErrorRepliesAreCounted(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	r := openRaw(t, port, constants{"slow_ns": uint64(1e9)})
	k := newTalk(t, port)
	for range 20 { // the replies of an old connection are not parsed in full
		k.ask("+PONG\r\n", "PING")
	}
	const wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
	k.ask(":1\r\n", "HSET", "h", "f", "v")
	k.ask("+OK\r\n", "SET", "s", "1")
	for range 30 {
		k.ask(wrongType, "GET", "h")
		k.ask("$1\r\n1\r\n", "GET", "s")
	}
	for range 3 { // equal replies in one send
		text := ""
		for range 4 {
			text += command("GET", "h")
		}
		if _, err := k.conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		k.expect(wrongType + wrongType + wrongType + wrongType)
	}
	k.ask("-ORDER-17 of user:1 is gone\r\n", "EVAL", "return redis.error_reply('ORDER-17 of user:1 is gone')", "0")
	k.ask("-user:1 is gone\r\n", "EVAL", "return redis.error_reply('user:1 is gone')", "0")
	k.ask("-LIMIT reached\r\n", "EVAL", "return redis.error_reply('LIMIT reached')", "0")
	k.ask("-ERR value is not an integer or out of range\r\n", "INCRBY", "s", "x")
	atRest(t, port)
	got := errorCounts(r.coll, roleServer)
	if of := errorCounts(r.coll, roleClient); len(of) > 0 {
		t.Errorf("counted at the client's end of a connection on this host, too: %v", of)
	}
	r.finish(t)
	want := map[string]uint64{"GET WRONGTYPE": 42, "EVAL ?": 2, "EVAL LIMIT": 1, "INCRBY ERR": 1}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// errorCounts are the counts of error replies at one end of connections, by command and first word of the error.
func errorCounts(coll *ebpf.Collection, role kernelRole) map[string]uint64 {
	names := map[uint32]string{}
	var k kernelOpKey
	var op uint32
	for it := coll.Maps[kernelMapOps].Iterate(); it.Next(&k, &op); {
		names[op] = opName(k.Name, k.Sub)
	}
	out := map[string]uint64{}
	var e kernelErrorKey
	var count uint64
	for it := coll.Maps[kernelMapErrors].Iterate(); it.Next(&e, &count); {
		if kernelRole(e.Role) == role {
			out[names[e.Op]+" "+errorCode(e)] += count
		}
	}
	return out
}
