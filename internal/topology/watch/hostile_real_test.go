package watch

import (
	"bufio"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/wire/target"
)

// TestEmptyMap: a server that knows no nodes, not even itself, is an error at once.
func TestEmptyMap(t *testing.T) {
	needs.Real(t)
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
	ended := make(chan error, 1)
	go func() {
		_, err := Watch(t.Context(), Options{Seeds: []target.Target{seed}, PerSecond: 100})
		ended <- err
	}()
	await.Until(t, "the watch ends", func() bool { return len(ended) > 0 })
	if err := <-ended; !errors.Is(err, ErrNotCluster) {
		t.Errorf("error %v", err)
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
