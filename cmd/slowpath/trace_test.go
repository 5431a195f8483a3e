package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/tap"
)

// kernelSource tells, once, whether the kernel source can run here.
var kernelSource = sync.OnceValue(func() error {
	t, err := tap.Open(tap.Options{Clock: clock.New(), Sink: recording.New(), Nodes: []tap.Node{{Address: "127.0.0.1:1", Remote: netip.MustParseAddrPort("127.0.0.1:1")}}})
	if err != nil {
		return err
	}
	return t.Close()
})

// callServer is "cli ADDRESS COMMAND…": one call, on a connection of its own, to its end.
func callServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: cli ADDRESS COMMAND...")
	}
	c, err := net.Dial("tcp", args[0])
	ts.Check(err)
	defer c.Close()
	_, err = io.WriteString(c, request(args[1:]...)+request("QUIT"))
	ts.Check(err)
	reply, err := io.ReadAll(c)
	ts.Check(err)
	if strings.HasPrefix(string(reply), "-") {
		ts.Fatalf("%s", reply)
	}
}

// load is "load ADDRESS": a little load on four connections until the script ends.
func load(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: load ADDRESS")
	}
	for range 4 {
		c, err := net.Dial("tcp", args[0])
		ts.Check(err)
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
				time.Sleep(5 * time.Millisecond) // between calls, not for a state
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
