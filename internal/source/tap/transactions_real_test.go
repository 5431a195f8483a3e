//go:build linux

package tap

import (
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/recording/series"
)

// TestTransactionsThatFail: a transaction that changed nothing is one whose EXEC is answered by null, in both versions
// of RESP, whether or not all was sent at once; a key that is watched no more is none.
func TestTransactionsThatFail(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	p := openTaped(t, Options{Nodes: nodeAt("127.0.0.1", port)})
	other, k := newTalk(t, port), newTalk(t, port)
	change := func() { other.ask("+OK\r\n", "SET", "k", "v") }
	queue := func() {
		k.ask("+OK\r\n", "MULTI")
		k.ask("+QUEUED\r\n", "SET", "k", "v")
	}
	for range 20 { // the replies of an old connection are not parsed in full
		k.ask("+PONG\r\n", "PING")
	}
	k.ask("+OK\r\n", "WATCH", "k")
	queue()
	k.ask("*1\r\n+OK\r\n", "EXEC")
	for range 3 {
		k.ask("+OK\r\n", "WATCH", "k")
		change()
		queue()
		k.ask("*-1\r\n", "EXEC")
	}
	k.ask("+OK\r\n", "WATCH", "k")
	change()
	sent := command("MULTI") + command("SET", "k", "v") + command("EXEC")
	if _, err := k.conn.Write([]byte(sent)); err != nil {
		t.Fatal(err)
	}
	k.expect("+OK\r\n+QUEUED\r\n*-1\r\n")
	for _, end := range []string{"UNWATCH", "DISCARD"} {
		k.ask("+OK\r\n", "WATCH", "k")
		change()
		if end == "DISCARD" {
			k.ask("+OK\r\n", "MULTI")
		}
		k.ask("+OK\r\n", end)
		queue()
		k.ask("*1\r\n+OK\r\n", "EXEC")
	}
	three := newTalk(t, port)
	three.send("HELLO", "3")
	if n, err := three.conn.Read(make([]byte, 4096)); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	three.ask("_\r\n", "GET", "none")
	three.ask("+OK\r\n", "WATCH", "k")
	change()
	three.ask("+OK\r\n", "MULTI")
	three.ask("+QUEUED\r\n", "GET", "none")
	three.ask("_\r\n", "EXEC")
	k.conn.Close()
	three.conn.Close()
	other.alone()
	p.readAll(t)
	for _, c := range []struct {
		of           *talk
		done, failed float64
	}{{k, 5, 4}, {three, 1, 1}} {
		client := c.of.conn.LocalAddr().String()
		done, _ := p.rec.Of(series.Transactions, client).Last()
		failed, _ := p.rec.Of(series.TransactionsFailed, client).Last()
		ns, _ := p.rec.Of(series.TransactionsFailedTime, client).Last()
		if done != c.done || failed != c.failed || ns <= 0 {
			t.Errorf("%v of %v transactions failed, in %v ns; want %v of %v", failed, done, ns, c.failed, c.done)
		}
	}
}
