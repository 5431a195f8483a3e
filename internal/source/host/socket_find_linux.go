package host

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// findAtOnce is how many requests go out in one write: their replies fit in the netlink socket's buffer.
const findAtOnce = 32

// Find asks the kernel for each socket by its ends: some µs each, however many sockets the host has.
func (d *diag) Find(sockets []Ends, found func(*Socket)) error {
	for len(sockets) > 0 {
		n := min(len(sockets), findAtOnce)
		if err := d.find(sockets[:n], found); err != nil {
			return fmt.Errorf("sock_diag: %w", err)
		}
		sockets = sockets[n:]
	}
	return nil
}

func (d *diag) find(sockets []Ends, found func(*Socket)) error {
	d.req = d.req[:0]
	first := d.seq + 1
	for _, e := range sockets {
		d.seq++
		d.req = appendFind(d.req, d.seq, e)
	}
	if err := d.send(); err != nil {
		return err
	}
	for left := len(sockets); left > 0; {
		err := d.replies(func(kind uint16, seq uint32, body []byte) error {
			if seq < first || seq > d.seq {
				return nil
			}
			left--
			// For a connection that is gone the kernel answers ENOENT, or with its listener.
			if kind == unix.NLMSG_ERROR {
				if err := netlinkError(body); !errors.Is(err, unix.ENOENT) {
					return err
				}
			} else if parseDiag(body, &d.s) && d.s.State == tcpEstablished {
				found(&d.s)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
