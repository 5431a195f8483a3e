package watch

import (
	"net"
	"slices"
	"sync"

	"slowpath/internal/lab/fleet"
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
