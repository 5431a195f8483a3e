package fault

import (
	"io"
	"net"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleettest"
)

// TestProxyDelaysNewConnections: what a server says comes through a proxy on loopback, not before its delay.
func TestProxyDelaysNewConnections(t *testing.T) {
	needs.Real(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if c, err := listener.Accept(); err == nil {
			_, _ = c.Write([]byte("x"))
			c.Close()
		}
	}()
	const delay = 100 * time.Millisecond
	addr, err := (&Proxy{Server: listener.Addr().String(), AcceptDelay: delay}).Start(t.Context(), fleettest.NewLab(t))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	client, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if got, err := io.ReadAll(client); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	if took := time.Since(start); took < delay {
		t.Errorf("a connection to the server after %v", took)
	}
}
