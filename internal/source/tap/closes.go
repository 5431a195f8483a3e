//go:build linux

package tap

import (
	"golang.org/x/sys/unix"

	"slowpath/internal/recording"
)

// closeReason says how a connection ended, by the error of its socket (sk_err) and its state before; "" where both ends
// said goodbye in turn.
func closeReason(e *kernelConnEvent) string {
	switch unix.Errno(e.Error) {
	case 0:
		if e.State == tcpEstablished && e.ClosedBy == 1 {
			return recording.CloseReset // without a FIN: bytes that it had not read, or SO_LINGER 0
		}
		return ""
	case unix.ECONNREFUSED:
		return recording.CloseRefused
	case unix.ECONNRESET, unix.EPIPE:
		return recording.CloseReset
	case unix.ETIMEDOUT:
		return recording.CloseTimedOut
	case unix.EHOSTUNREACH, unix.ENETUNREACH:
		return recording.CloseUnreachable
	case unix.ECONNABORTED:
		return recording.CloseAborted
	}
	return unix.ErrnoName(unix.Errno(e.Error))
}

// tcpEstablished is TCP_ESTABLISHED of the kernel.
const tcpEstablished = 1
