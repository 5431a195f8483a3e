package facts

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// TestFailureOf: the errors of real connections are told apart by their text, which is all that a recording has.
func TestFailureOf(t *testing.T) {
	listener := func(serve func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { c.Close() })
				serve(c)
			}
		}()
		return l.Addr().String()
	}
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for name, tt := range map[string]struct {
		target string
		want   Failure
	}{
		"nothing listens": {gone.Addr().String(), FailedRefused},
		"no socket":       {"unix://" + filepath.Join(t.TempDir(), "none.sock"), FailedRefused},
		"silent":          {listener(func(net.Conn) {}), FailedNoReply},
		"closes":          {listener(func(c net.Conn) { c.Close() }), FailedClosed},
		"resets": {listener(func(c net.Conn) {
			_ = c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}), FailedClosed},
		"no Redis": {listener(func(c net.Conn) {
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		}), FailedOther},
	} {
		t.Run(name, func(t *testing.T) {
			to, err := target.Parse(tt.target)
			if err != nil {
				t.Fatal(err)
			}
			patience := time.Minute
			if tt.want == FailedNoReply {
				patience = time.Second / 2
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			s, _, err := session.Open(ctx, to, "test")
			if err == nil {
				s.Close()
				t.Fatal("connected")
			}
			if got := failureOf(err.Error()); got != tt.want {
				t.Errorf("%q is %q, want %q", err, got, tt.want)
			}
		})
	}
	for text, want := range map[string]Failure{
		"": "", "unfinished when the watch ended": "", "LOADING": FailedReply, "error reply": FailedReply,
		// as explainAttempt of internal/wire/target writes them; no test can rely on a route that drops packets
		"connecting to h:1: " + target.ErrTimeout.Error() + ": no answer in 4s":      FailedUnreachable,
		"connecting to h:1: " + target.ErrUnreachable.Error() + ": no route to host": FailedUnreachable,
	} {
		if got := failureOf(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
