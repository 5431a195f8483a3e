package session

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// listen starts a server that runs handle for each connection, and gives its target.
func listen(t *testing.T, handle func(net.Conn)) target.Target {
	t.Helper()
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
			go func() {
				defer c.Close()
				handle(c)
			}()
		}
	}()
	to, err := target.Parse(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// scripted answers each command by the map of its text ("AUTH p"), by its first word, or with +OK. "close" closes;
// "hang" says nothing.
func scripted(replies map[string]string) func(net.Conn) {
	return func(c net.Conn) {
		r := resp.NewReader(c, resp.Limits{})
		for {
			v, err := r.Read()
			if err != nil {
				return
			}
			var words []string
			for _, e := range v.Elems {
				words = append(words, e.Text())
			}
			reply, ok := replies[strings.Join(words, " ")]
			if !ok {
				reply, ok = replies[words[0]]
			}
			switch {
			case reply == "close":
				return
			case reply == "hang":
				continue
			case !ok:
				reply = "+OK\r\n"
			}
			if _, err := c.Write([]byte(reply)); err != nil {
				return
			}
		}
	}
}

// enough is far beyond what any of these tests needs.
const enough = time.Minute

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func open1(t *testing.T, to target.Target) *Session {
	t.Helper()
	s, _, err := Open(within(t, enough), to, "slowpath")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestForbiddenIsNotSent(t *testing.T) {
	got := make(chan string, 100)
	to := listen(t, func(c net.Conn) {
		sc := bufio.NewScanner(c)
		for sc.Scan() {
			got <- sc.Text()
			if sc.Text() == "PING" {
				c.Write([]byte("+PONG\r\n"))
			}
		}
	})
	s, _, err := Open(within(t, enough), to, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, args := range forbiddenCommands() {
		if _, err := s.Do(within(t, enough), args...); !errors.Is(err, ErrForbidden) {
			t.Errorf("%q: %v", args, err)
		}
		if _, err := s.Pipeline(within(t, enough), [][]string{{"PING"}, args}); !errors.Is(err, ErrForbidden) {
			t.Errorf("pipeline of %q: %v", args, err)
		}
	}
	if _, err := s.Do(within(t, enough), "PING"); err != nil {
		t.Fatal(err)
	}
	want := []string{"*1", "$4", "PING", "*1", "$4", "PING"}
	for _, w := range want {
		if g := <-got; g != w {
			t.Errorf("the server got %q, want %q", g, w)
		}
	}
	if len(got) > 0 {
		t.Errorf("the server got more: %q", <-got)
	}
}

func TestDoTimed(t *testing.T) {
	to := listen(t, scripted(map[string]string{"ECHO": "$2\r\nhi\r\n"}))
	s := open1(t, to)
	v, timing, err := s.DoTimed(within(t, enough), "ECHO", "hi")
	if err != nil || v.Text() != "hi" {
		t.Fatal(v, err)
	}
	if timing.RequestBytes != len("*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n") || timing.ReplyBytes != len("$2\r\nhi\r\n") ||
		timing.End.Before(timing.Sent) {
		t.Errorf("%+v", timing)
	}
}

func TestPushMessagesAreSkipped(t *testing.T) {
	push := ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n"
	to := listen(t, scripted(map[string]string{"PING": push + "+PONG\r\n" + push, "ECHO": "$1\r\nx\r\n"}))
	s := open1(t, to)
	for range 2 {
		vs, err := s.Pipeline(within(t, enough), [][]string{{"PING"}, {"ECHO", "x"}})
		if err != nil || len(vs) != 2 || vs[0].Text() != "PONG" || vs[1].Text() != "x" {
			t.Fatal(vs, err)
		}
	}
}

func TestErrorReplies(t *testing.T) {
	to := listen(t, scripted(map[string]string{
		"PING": "-LOADING Redis is loading the dataset in memory\r\n",
		"INFO": "-NOPERM no\r\n",
	}))
	s := open1(t, to)
	_, err := s.Do(within(t, enough), "PING")
	var reply *resp.ServerError
	if !errors.Is(err, ErrLoading) || !errors.As(err, &reply) || reply.Code != "LOADING" {
		t.Error(err)
	}
	if _, err = s.Do(within(t, enough), "INFO"); !errors.As(err, &reply) || reply.Code != "NOPERM" {
		t.Error(err)
	}
	vs, err := s.Pipeline(within(t, enough), [][]string{{"INFO"}, {"PING"}})
	if err != nil || len(vs) != 2 || vs[0].Err() == nil {
		t.Error(vs, err)
	}
}

func TestCancelInterruptsRead(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	to := listen(t, func(c net.Conn) {
		scripted(map[string]string{"PING": "close"})(c)
		cancel() // it has read PING
		_, _ = c.Read(make([]byte, 1))
	})
	s := open1(t, to)
	if _, err := s.Do(ctx, "PING"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.Do(within(t, enough), "PING"); !errors.Is(err, ErrBroken) {
		t.Error(err)
	}
}

func TestBrokenInTheMiddleOfAReply(t *testing.T) {
	to := listen(t, func(c net.Conn) {
		buf := make([]byte, 1000)
		c.Read(buf)
		c.Write([]byte("+OK\r\n"))
		c.Read(buf)
		c.Write([]byte("$100\r\nhalf"))
	})
	s := open1(t, to)
	_, err := s.Do(within(t, enough), "INFO")
	if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), "in the middle") {
		t.Error(err)
	}
	if _, err := s.Do(within(t, enough), "INFO"); !errors.Is(err, ErrBroken) {
		t.Error(err)
	}
}

func TestEndedContextSendsNothing(t *testing.T) {
	s := open1(t, listen(t, scripted(nil)))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Do(ctx, "PING"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.Do(within(t, enough), "PING"); err != nil {
		t.Error(err)
	}
}
