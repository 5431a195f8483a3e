package scenario

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// lateServer answers the commands of one connection in their order, each when the test lets it.
func lateServer(t *testing.T) (addr string, release chan<- string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	replies := make(chan string)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		for reply := range replies {
			for range 3 { // *1, $4, PING
				if _, err := in.ReadString('\n'); err != nil {
					return
				}
			}
			fmt.Fprint(c, reply)
		}
	}()
	return l.Addr().String(), replies
}

func TestCallersOfASharedConnectionWaitForThoseBefore(t *testing.T) {
	addr, release := lateServer(t)
	l := &Lab{Log: io.Discard}
	s, err := l.shareConn(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	first, second := make(chan error, 1), make(chan error, 1)
	if err := errors.Join(s.send(first, []string{"PING"}), s.send(second, []string{"PING"})); err != nil {
		t.Fatal(err)
	}
	release <- "+PONG\r\n"
	if err := <-first; err != nil {
		t.Errorf("first: %v", err)
	}
	select {
	case err := <-second:
		t.Errorf("the second has a reply: %v", err)
	default:
	}
	release <- "-ERR no\r\n"
	if err := <-second; err == nil {
		t.Error("the second has not got its own reply")
	}
	given, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.do(given, "PING"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller that gave up: %v", err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	close(release)
}
