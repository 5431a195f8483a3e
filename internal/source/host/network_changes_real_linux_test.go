package host

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/recording"
)

// changesHeard is a recording of another goroutine.
type changesHeard struct {
	recording.Sink
	mu  sync.Mutex
	all []string
}

func (h *changesHeard) Event(e recording.Event) {
	if e.Kind == recording.KindBlindSpot {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, recording.DetailOf[recording.BlindSpot](e).What)
		return
	}
	d := recording.DetailOf[recording.NetworkChangeDetail](e)
	by, _, _ := strings.Cut(d.By, "[")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, strings.TrimSpace(d.What+" "+d.How+" "+by))
}

func (h *changesHeard) has(want string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, got := range h.all {
		if got == want {
			return true
		}
	}
	return false
}

// TestUnheardNetworkChanges: who lacks CAP_NET_ADMIN is told of all but nftables, and that is a blind spot.
func TestUnheardNetworkChanges(t *testing.T) {
	needs.Real(t, needs.Root)
	inNewNetNS(t, func() {
		whole := HearNetwork()
		whole.Close()
		if len(whole.Unheard) != 0 {
			t.Errorf("of root: %+v", whole.Unheard)
		}
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var rights [2]unix.CapUserData
		err := unix.Capget(&header, &rights[0])
		if err == nil {
			rights[0].Effective &^= 1 << unix.CAP_NET_ADMIN
			err = unix.Capset(&header, &rights[0])
		}
		if err != nil {
			t.Error(err)
			return
		}
		n := HearNetwork()
		defer n.Close()
		if len(n.sockets) != 1 || len(n.Unheard) != 1 || !strings.Contains(n.Unheard[0].What, "nftables") ||
			!strings.Contains(n.Unheard[0].Enable, "CAP_NET_ADMIN") {
			t.Errorf("%d sockets, unheard: %+v", len(n.sockets), n.Unheard)
		}
	})
}

// TestNetworkChanges: a route, a queueing discipline and nftables that are changed in a network namespace are heard
// there. Of more than are recorded in an hour it is said that some are left out.
func TestNetworkChanges(t *testing.T) {
	needs.Real(t, needs.Root)
	for _, program := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	heard := &changesHeard{Sink: recording.New()}
	ctx, cancel := context.WithCancel(t.Context())
	run := func(args ...string) bool {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v %s", args, err, out)
		}
		return err == nil
	}
	var watching sync.WaitGroup
	inNewNetNS(t, func() {
		n := HearNetwork()
		watching.Go(func() { n.Watch(ctx, clock.New(), heard) })
		run("ip", "link", "set", "lo", "up")
		run("ip", "route", "add", "192.0.2.0/24", "dev", "lo")
		run("tc", "qdisc", "add", "dev", "lo", "root", "pfifo", "limit", "7")
		if _, err := exec.LookPath("nft"); err == nil {
			run("nft", "add", "table", "ip", "slowpath_test")
		}
		var many strings.Builder
		for i := range 3 * networkMost { // an hour may end meanwhile
			fmt.Fprintf(&many, "route add 198.18.%d.%d/32 dev lo\n", i/100, i%100)
		}
		batch := exec.Command("ip", "-batch", "-")
		batch.Stdin = strings.NewReader(many.String())
		if out, err := batch.CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
	for _, want := range []string{"route added", "queueing discipline added"} {
		await.Until(t, want, func() bool { return heard.has(want) })
	}
	if _, err := exec.LookPath("nft"); err == nil {
		await.Until(t, "nft", func() bool { return heard.has("nftables rules changed nft") })
	}
	const leftOut = "some changes of routes, routing rules and queueing disciplines of this host"
	await.Until(t, leftOut, func() bool { return heard.has(leftOut) })
	cancel()
	watching.Wait()
}

// inNewNetNS calls do on a thread in a network namespace of its own, which ends with it. The main thread cannot end,
// and /proc/self is about it: see inNetNS.
func inNewNetNS(t *testing.T, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			inNewNetNS(t, do)
			return
		}
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return
		}
		do()
	}()
	<-done
}
