package watch

import (
	"bufio"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/wire/target"
)

// TestEmptyMap: a server that knows no nodes, not even itself, is an error at once.
func TestEmptyMap(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerWithoutNodes(c)
		}
	}()
	seed, err := target.Parse(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := Watch(t.Context(), Options{Seeds: []target.Target{seed}, PerSecond: 100})
		result <- err
	}()
	select {
	case err := <-result:
		if !errors.Is(err, ErrNotCluster) {
			t.Errorf("error %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits")
	}
}

// answerWithoutNodes answers CLUSTER NODES with an empty text, and each other command with OK.
func answerWithoutNodes(c net.Conn) {
	defer c.Close()
	for lines := bufio.NewScanner(c); lines.Scan(); {
		args, _ := strconv.Atoi(strings.TrimPrefix(lines.Text(), "*"))
		reply := "+OK\r\n"
		for range 2 * args { // the length of each, and itself
			if lines.Scan(); lines.Text() == "NODES" {
				reply = "$0\r\n\r\n"
			}
		}
		if _, err := c.Write([]byte(reply)); err != nil {
			return
		}
	}
}
