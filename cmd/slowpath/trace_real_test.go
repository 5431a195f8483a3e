package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"slowpath/internal/clock"
	"slowpath/internal/house/await"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
	"slowpath/internal/source/tap"
)

// kernelSource tells, once, whether the tap can run here.
var kernelSource = sync.OnceValue(func() error {
	t, err := tap.Open(tap.Options{Clock: clock.New(), Files: host.Root{}, Sink: recording.New(), Nodes: []tap.Node{{
		Address: "127.0.0.1:1",
		Remote:  netip.MustParseAddrPort("127.0.0.1:1"),
	}}})
	if err != nil {
		return err
	}
	return t.Close()
})

// dial connects to "[tls] ADDRESS" and gives the arguments behind it.
func dial(ts *testscript.TestScript, args []string) (net.Conn, []string) {
	if args[0] == "tls" && len(args) > 1 {
		c, err := tls.Dial("tcp", args[1], &tls.Config{InsecureSkipVerify: true}) // a server of this test
		ts.Check(err)
		return c, args[2:]
	}
	c, err := net.Dial("tcp", args[0])
	ts.Check(err)
	return c, args[1:]
}

// callServer is "cli [tls] ADDRESS COMMAND…": one call, on a connection of its own, to its end.
func callServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: cli [tls] ADDRESS COMMAND...")
	}
	c, words := dial(ts, args)
	defer c.Close()
	_, err := io.WriteString(c, request(words...))
	ts.Check(err)
	_, err = io.WriteString(c, request("QUIT"))
	ts.Check(err)
	reply, err := io.ReadAll(c)
	ts.Check(err)
	if strings.HasPrefix(string(reply), "-") {
		ts.Fatalf("%s", reply)
	}
	const most = 4 << 10 // a script's log is no place for all keys of a server
	_, _ = ts.Stdout().Write(reply[:min(len(reply), most)])
}

// load is "load [tls] ADDRESS": a little load on four connections until the script ends.
func makeLoad(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: load [tls] ADDRESS")
	}
	for range 4 {
		c, _ := dial(ts, args)
		ts.Defer(func() { c.Close() })
		go func() {
			reply := make([]byte, 64)
			for {
				if _, err := io.WriteString(c, request("GET", "no-such-key")); err != nil {
					return
				}
				if _, err := c.Read(reply); err != nil {
					return
				}
				await.Pass(5 * time.Millisecond) // between calls, not for a state
			}
		}()
	}
}

// churn calls a server until the script ends, each time on a new connection.
func churn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: churn ADDRESS")
	}
	ended := make(chan struct{})
	ts.Defer(func() { close(ended) })
	for range 8 {
		go func() {
			reply := make([]byte, 64)
			for {
				select {
				case <-ended:
					return
				default:
				}
				c, err := net.Dial("tcp", args[0])
				if err != nil {
					continue
				}
				if _, err := io.WriteString(c, request("GET", "no-such-key")); err == nil {
					_, _ = c.Read(reply) // the server may have ended
				}
				_ = c.(*net.TCPConn).SetLinger(0) // no TIME_WAIT: the ports of this host must last
				c.Close()
			}
		}()
	}
}

func request(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}
