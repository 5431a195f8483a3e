//go:build linux

package tap

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"slowpath/internal/recording"
)

// TestCloseTellsWhatWaited: the close of a connection with a call in flight has the command and the length of
// its request.
func TestCloseTellsWhatWaited(t *testing.T) {
	port := startServer(t)
	tap, rec := openAt(t, "127.0.0.1", port, Options{})
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	k := &talk{t: t, conn: c}
	k.ask("+PONG\r\n", "PING")
	length := k.send("BLPOP", "nothing", "0")
	k.taken(port)
	client := c.LocalAddr().String()
	c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var detail recording.ConnDetail
	tap.recorder.Sink = closes{rec, func(d recording.ConnDetail) {
		if d.Client == client && d.Waiting > 0 {
			detail = d
			cancel()
		}
	}}
	if err := tap.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := tap.Close(); err != nil {
		t.Error(err)
	}
	if detail.Waiting != 1 || detail.By != recording.Client || detail.Op != "BLPOP" || detail.OpBytes != int64(length) {
		t.Errorf("%+v, want BLPOP of %d bytes waiting", detail, length)
	}
}
