package watch

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/wire/cluster"
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

// TestEverNewNodes: a server that names other nodes in each reply fills no memory.
func TestEverNewNodes(t *testing.T) {
	st := newMapState()
	const perView = 5000
	full := false
	for round := range maxEverKnown/perView + 3 {
		m := cluster.Map{Nodes: []cluster.Node{{ID: "own", Host: "127.0.0.1", Port: 1, Flags: []string{"myself"}}}}
		for i := range perView {
			id := fmt.Sprint(round, " ", i)
			m.Nodes = append(m.Nodes, cluster.Node{ID: id, Host: "127.0.0.1", Port: 2, Primary: true})
		}
		full = st.merge(m, time.Unix(int64(round), 0)).full
		if len(st.everKnown) > maxEverKnown || len(st.members) > 2*perView+1 {
			t.Fatalf("round %d: %d members of %d", round, len(st.members), len(st.everKnown))
		}
	}
	if !full || len(st.everKnown) != maxEverKnown {
		t.Errorf("full %v with %d nodes", full, len(st.everKnown))
	}
}
