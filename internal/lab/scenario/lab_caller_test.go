package scenario

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

func TestRepeatEndsWithTheLab(t *testing.T) {
	addr, release := lateServer(t)
	var log bytes.Buffer
	l := &Lab{Log: &log}
	took := l.timings("callers")
	asked := make(chan struct{}, 2)
	err := l.startCaller(t.Context(), net.Dialer{}, addr, time.Microsecond, func(c *caller) error {
		asked <- struct{}{}
		return took.time(func() error { return c.call("PING") })
	})
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	release <- "+PONG\r\n"
	<-asked // it waits for a reply that never comes
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if got := log.String(); !strings.HasPrefix(got, "callers: 2 calls, p50 ") || strings.Contains(got, "gave up") {
		t.Errorf("log: %q", got)
	}
	close(release)
}
