package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// maxDevices bounds the network devices of which a round tells.
const maxDevices = 64

// Constants and sizes of linux/rtnetlink.h and linux/gen_stats.h.
const (
	sizeOfTCMessage = 20
	tcStatsQueue    = 3
)

// Queues calls visit for each queueing discipline of the namespace's devices, until it returns false.
func (d *diag) Queues(visit func(Queue) bool) error {
	if d.route == nil {
		return errors.ErrUnsupported
	}
	if d.devices == nil {
		if err := d.readDevices(); err != nil {
			return err
		}
	}
	return d.route.ask(unix.RTM_GETQDISC, sizeOfTCMessage, func(body []byte) bool {
		if len(body) < sizeOfTCMessage {
			return true
		}
		name, ok := d.devices[int32(binary.NativeEndian.Uint32(body[4:]))]
		if !ok {
			return true // it came after the first round
		}
		q := Queue{Device: name}
		attributes(body[sizeOfTCMessage:], func(kind uint16, value []byte) {
			switch kind {
			case unix.TCA_KIND:
				q.Kind = cString(value)
			case unix.TCA_STATS2:
				attributes(value, func(kind uint16, value []byte) {
					if kind == tcStatsQueue && len(value) >= 8 { // struct gnet_stats_queue: packets, bytes, ...
						q.Bytes = binary.NativeEndian.Uint32(value[4:])
					}
				})
			}
		})
		return visit(q)
	})
}

// readDevices reads the names of the namespace's devices.
func (d *diag) readDevices() error {
	d.devices = map[int32]string{}
	return d.route.ask(unix.RTM_GETLINK, unix.SizeofIfInfomsg, func(body []byte) bool {
		if len(body) < unix.SizeofIfInfomsg {
			return true
		}
		attributes(body[unix.SizeofIfInfomsg:], func(kind uint16, value []byte) {
			if kind == unix.IFLA_IFNAME {
				d.devices[int32(binary.NativeEndian.Uint32(body[4:]))] = cString(value)
			}
		})
		return len(d.devices) < maxDevices
	})
}

// cString is a string of the kernel, up to its NUL.
func cString(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.ToValidUTF8(s, "?")
}

// ask dumps what the kernel has of a kind, with an empty message of size bytes.
func (d *diag) ask(kind uint16, size int, take func(body []byte) bool) error {
	d.seq++
	header := unix.NlMsghdr{
		Len: uint32(unix.NLMSG_HDRLEN + size), Type: kind, Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP, Seq: d.seq,
	}
	d.req = append(appendStruct(d.req[:0], &header), make([]byte, size)...)
	if err := d.dump(take); err != nil {
		return fmt.Errorf("rtnetlink: %w", err)
	}
	return nil
}
