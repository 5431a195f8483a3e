package watch

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/resp"
)

// subscribe listens on a node; the function gives what has come so far, as "channel message".
func (w *watchedCluster) subscribe(i *fleet.Instance, channels ...string) func() []string {
	w.Helper()
	c, err := net.Dial("tcp", i.Addr)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	if _, err := c.Write(resp.AppendCommand(nil, append([]string{"SUBSCRIBE"}, channels...)...)); err != nil {
		w.Fatal(err)
	}
	var mu sync.Mutex
	var got []string
	confirmed := 0
	go func() {
		r := resp.NewReader(c, resp.Limits{})
		for {
			v, err := r.Read()
			if err != nil {
				return
			}
			mu.Lock()
			switch {
			case len(v.Elems) == 3 && v.Elems[0].Text() == "message":
				got = append(got, v.Elems[1].Text()+" "+v.Elems[2].Text())
			case len(v.Elems) == 3:
				confirmed++
			}
			mu.Unlock()
		}
	}()
	w.until("the subscription is confirmed",
		func() bool { mu.Lock(); defer mu.Unlock(); return confirmed == len(channels) })
	return func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(got) }
}

// TestPublishedOnACommandConnection: it is the subscriber that chooses how messages come. With RESP3 they are push
// frames on the connection of its commands; with RESP2 a connection that has subscribed takes no other commands.
func TestPublishedOnACommandConnection(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	w := watchCluster(t, servers.Redis7015, 3, 0, soon, Options{Publish: true})
	node := w.cluster.Nodes[2]
	for _, test := range []struct {
		proto string
		slot  int
		kind  resp.Kind
		get   resp.Kind // of the reply to GET after SUBSCRIBE
	}{{"2", 7, resp.Array, resp.Error}, {"3", 8, resp.Push, resp.Null}} {
		t.Run("RESP"+test.proto, func(t *testing.T) {
			c, err := net.Dial("tcp", node.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			r := resp.NewReader(c, resp.Limits{})
			ask := func(words ...string) resp.Value {
				t.Helper()
				_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
				_, err := c.Write(resp.AppendCommand(nil, words...))
				v := resp.Value{}
				if err == nil {
					v, err = r.Read()
				}
				if err != nil {
					t.Fatal(words, err)
				}
				return v
			}
			ask("HELLO", test.proto)
			if v := ask("SUBSCRIBE", movedChannel); v.Kind != test.kind {
				t.Errorf("SUBSCRIBE: %+v", v)
			}
			w.move(test.slot, 0, 1)
			v, err := r.Read()
			if err != nil || v.Kind != test.kind || len(v.Elems) != 3 || v.Elems[1].Text() != movedChannel ||
				!strings.HasSuffix(v.Elems[2].Text(), " "+w.cluster.Nodes[1].Addr) {
				t.Errorf("%+v (%v)", v, err)
			}
			if v := ask("GET", "foo"); v.Kind != test.get { // slot 12182, of this node
				t.Errorf("GET: %+v", v)
			}
		})
	}
}
