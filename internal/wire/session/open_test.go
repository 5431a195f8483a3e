package session

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
	"slowpath/internal/wire/wiretest"
)

func TestOpenRefused(t *testing.T) {
	first := func(text string) func(net.Conn) { // says it on accept and closes, as Redis does
		return func(c net.Conn) { c.Write([]byte(text)) }
	}
	for name, tt := range map[string]struct {
		handle func(net.Conn)
		change func(*target.Target)
		kind   error
		text   string
	}{
		"maxclients": {
			handle: first("-ERR max number of clients reached\r\n"), kind: ErrMaxClients,
			text: "maxclients",
		},
		"protected mode": {
			handle: first("-DENIED Redis is running in protected mode because\r\n"),
			kind:   ErrProtected, text: "protected mode",
		},
		"closes": {handle: func(net.Conn) {}, kind: ErrClosed, text: "closed the connection before its first reply"},
		"http": {
			handle: scriptedLine("HTTP/1.1 400 Bad Request\r\n\r\n"), kind: resp.ErrNotRedis,
			text: "HTTP",
		},
		"tls": {
			handle: scriptedLine("\x15\x03\x01\x00\x02\x02\x16"), kind: resp.ErrNotRedis,
			text: "--tls",
		},
		"billion elements": {handle: scriptedLine("*1000000000\r\n"), kind: resp.ErrTooManyElements},
		"no password given": {
			handle: scripted(map[string]string{"PING": "-NOAUTH Authentication required.\r\n"}),
			kind:   ErrNoAuth,
			text:   "REDISCLI_AUTH",
		},
		"wrong password": {
			handle: scripted(map[string]string{"AUTH": "-WRONGPASS invalid username-password pair\r\n"}),
			change: withPassword,
			kind:   ErrWrongPassword, text: "--user, -a and REDISCLI_AUTH",
		},
		"wrong password before 6.0": {
			handle: scripted(map[string]string{"AUTH": "-ERR invalid password\r\n"}),
			change: withPassword,
			kind:   ErrWrongPassword,
		},
		"user before 6.0": {
			handle: scripted(map[string]string{"AUTH": "-ERR wrong number of arguments for 'auth' command\r\n"}),
			change: withPassword, text: "leave out --user",
		},
		"AUTH renamed": {
			handle: scripted(map[string]string{"AUTH": "-ERR unknown command `AUTH`, with args beginning with: `me`, " +
				"`s3cret`, \r\n"}),
			change: withPassword, text: "***",
		},
		"no RESP3": {
			handle: scripted(map[string]string{"HELLO": "-ERR unknown command `HELLO`\r\n"}),
			change: func(t *target.Target) { t.Protocol = 3 }, text: "leave out -3",
		},
		"no such database": {
			handle: scripted(map[string]string{"SELECT": "-ERR DB index is out of range\r\n"}),
			change: func(t *target.Target) { t.DB = 99 }, text: "check -n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			to := listen(t, tt.handle)
			if tt.change != nil {
				tt.change(&to)
			}
			_, opening, err := Open(within(t, enough), to, "")
			if err == nil || tt.kind != nil && !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.text) {
				t.Fatalf("got %v, want %v with %q", err, tt.kind, tt.text)
			}
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			if opening.Connect <= 0 || opening.Handshake <= 0 || opening.Start.IsZero() {
				t.Errorf("%+v", opening)
			}
		})
	}
}

func withPassword(t *target.Target) { t.User, t.Password = "me", "s3cret" }

// scriptedLine answers whatever comes with a text.
func scriptedLine(text string) func(net.Conn) {
	return func(c net.Conn) {
		buf := make([]byte, 4096)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			c.Write([]byte(text))
		}
	}
}

func TestOpenHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wiretest.New(t, func(string) string { return "+PONG\r\n" })
		defer s.Freeze()()
		_, _, err := Open(s.Reached(within(t, time.Second)), s.Target(), "")
		if !errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "no reply to PING within 1s") {
			t.Error(err)
		}
	})
}

func TestOpenWithStateStillGivesASession(t *testing.T) {
	for _, state := range []string{"LOADING x", "BUSY x", "MASTERDOWN x"} {
		to := listen(t, scripted(map[string]string{"PING": "-" + state + "\r\n", "SELECT": "-" + state + "\r\n"}))
		to.DB = 1
		if s, _, err := Open(within(t, enough), to, ""); err != nil {
			t.Error(err)
		} else {
			s.Close()
		}
	}
}

func TestOpenPasswordNotNeeded(t *testing.T) {
	for _, text := range []string{
		"ERR Client sent AUTH, but no password is set",
		"ERR AUTH <password> called without any password configured for the default user. Are you sure your " +
			"configuration is correct?",
	} {
		to := listen(t, scripted(map[string]string{"AUTH": "-" + text + "\r\n"}))
		to.Password = "x"
		s, _, err := Open(within(t, enough), to, "me")
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}

func TestOpenSendsTheHandshakeInOneWrite(t *testing.T) {
	wrote := make(chan string, 1)
	to := listen(t, func(c net.Conn) {
		buf := make([]byte, 4096)
		n, _ := c.Read(buf)
		wrote <- string(buf[:n])
		c.Write([]byte("+OK\r\n%1\r\n+proto\r\n:3\r\n+OK\r\n-ERR no such subcommand\r\n"))
		c.Read(buf)
	})
	to.Password, to.Protocol, to.DB = "p", 3, 2
	open1(t, to)
	want := "*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n" +
		"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$8\r\nslowpath\r\n"
	if got := <-wrote; got != want {
		t.Errorf("%q", got)
	}
}

// TestOpenThroughProxy: a proxy that closes on a command it does not know gets a second connection without it.
func TestOpenThroughProxy(t *testing.T) {
	var conns atomic.Int32
	answer := scripted(map[string]string{"CLIENT": "close", "PING": "+PONG\r\n"})
	to := listen(t, func(c net.Conn) {
		conns.Add(1)
		answer(c)
	})
	open1(t, to)
	if conns.Load() != 2 {
		t.Errorf("%d connections", conns.Load())
	}
}

func TestOpenRefusedConnection(t *testing.T) {
	to := listen(t, func(net.Conn) {})
	to.Port = 1
	if _, _, err := Open(within(t, enough), to, ""); !errors.Is(err, target.ErrRefused) {
		t.Error(err)
	}
}
