package nodes

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
	"slowpath/internal/wire/wiretest"
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
		"closes":          {listener(func(c net.Conn) { c.Close() }), FailedClosed},
		"resets": {listener(func(c net.Conn) {
			_ = c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}), FailedClosed},
		"no Redis": {listener(func(c net.Conn) {
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		}), failedOther},
	} {
		t.Run(name, func(t *testing.T) {
			to, err := target.Parse(tt.target)
			if err != nil {
				t.Fatal(err)
			}
			failsToOpen(t, t.Context(), to, tt.want)
		})
	}
	t.Run("silent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := wiretest.New(t, func(string) string { return "+PONG\r\n" })
			defer s.Freeze()()
			failsToOpen(t, s.Reached(t.Context()), s.Target(), FailedNoReply)
		})
	})
	for text, want := range map[string]Failure{
		"": "", "unfinished when the watch ended": "", "LOADING": failedReply, "error reply": failedReply,
		// as explainAttempt of internal/wire/target writes them; no test can rely on a route that drops packets
		"connecting to h:1: " + target.ErrTimeout.Error() + ": no answer in 4s":      FailedUnreachable,
		"connecting to h:1: " + target.ErrUnreachable.Error() + ": no route to host": FailedUnreachable,
	} {
		if got := failureOf(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// failsToOpen expects that no session is opened within a minute, and why.
func failsToOpen(t *testing.T, ctx context.Context, to target.Target, want Failure) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s, _, err := session.Open(ctx, to, "test")
	if err == nil {
		s.Close()
		t.Fatal("connected")
	}
	if got := failureOf(err.Error()); got != want {
		t.Errorf("%q is %q, want %q", err, got, want)
	}
}
