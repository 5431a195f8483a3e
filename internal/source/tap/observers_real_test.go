//go:build linux

package tap

import (
	"net/netip"
	"sync"
	"testing"

	"slowpath/internal/clock"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// TestOwnWhileItCloses: other sources open connections while the tap closes, and afterwards. The race detector sees
// whether they use its maps then.
func TestOwnWhileItCloses(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF)
	node := Node{Address: "127.0.0.1:6379", Remote: netip.MustParseAddrPort("127.0.0.1:6379")}
	tap, err := Open(Options{
		Nodes: []Node{node}, Clock: clock.New(), Files: hostfs.Root{}, Sink: recording.New(),
	})
	attached(t, err)
	var all sync.WaitGroup
	begun := make(chan struct{})
	all.Go(func() {
		for cookie := range uint64(1000) {
			tap.Own(cookie)
			tap.Observe(node.Address, node.Remote)
			if cookie == 10 {
				close(begun)
			}
		}
	})
	<-begun
	if err := tap.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
}
