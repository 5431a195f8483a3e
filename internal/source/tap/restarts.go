//go:build linux

package tap

import (
	"github.com/cilium/ebpf"
)

// restart is a server that is another process now.
type restart struct {
	address string
	pid     int
}

// maxRestarts is how many restarts wait for the loop that passes on events, which takes them within milliseconds.
const maxRestarts = 64

// Restarted says that the server at an address is another process now. Clients may reach it at addresses that are not
// known: by its process all of its connections are found. It may be called from any goroutine, and does not wait.
func (t *Tap) Restarted(address string, pid int) {
	select {
	case t.restarts <- restart{address, pid}:
	default: // its connections at the address that is known are still found
	}
}

// followRestarts takes the restarts that were reported.
func (t *Tap) followRestarts() {
	for {
		select {
		case r := <-t.restarts:
			for i := range t.Nodes { // the recorder has the same list
				if n := &t.Nodes[i]; n.Address == r.address && n.PID != 0 && n.PID != r.pid {
					t.follow(n, r.pid)
				}
			}
		default:
			return
		}
	}
}

// follow watches another process as a node.
func (t *Tap) follow(n *Node, pid int) {
	nodes := t.kernel.coll.Maps[kernelMapNodes]
	before := kernelNodeKey{Id: uint32(n.PID)}
	var number uint32
	if nodes.Lookup(before, &number) != nil {
		return
	}
	_ = nodes.Delete(before) // it has ended
	if err := nodes.Update(kernelNodeKey{Id: uint32(pid)}, number, ebpf.UpdateAny); err != nil {
		t.blind(n.Address, "calls at addresses other than that of the target, since the server was restarted",
			firstLine(err), "watch again")
		return
	}
	n.PID = pid
	t.recorder.serving[uint32(pid)] = *n
	_ = t.watchNode(*n) // its first process was watched in the same way, or a blind spot says why not
}
