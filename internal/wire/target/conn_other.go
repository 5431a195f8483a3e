//go:build !linux

package target

// stampArrivals does nothing: only Linux gives arrival times for TCP.
func stampArrivals(uintptr) {}

// HoldStamps does nothing: only Linux gives arrival times for TCP.
func HoldStamps() (release func()) { return func() {} }

// receiver is not needed: wire reads as the net package does.
type receiver struct{}

// PeerPID is known on Linux only.
func (c *Conn) PeerPID() (pid int, ok bool) { return 0, false }

// TCPInfo is known on Linux only.
func (c *Conn) TCPInfo() (TCPInfo, error) { return TCPInfo{}, errNoTCPInfo }

func cookieOf(uintptr) (uint64, bool) { return 0, false }
