//go:build linux

package tap

import (
	"golang.org/x/sys/unix"

	"slowpath/internal/recording"
)

// closeReason says how a connection ended, by the error of its socket (sk_err) and its state before; "" where both ends
// sent a FIN.
func closeReason(e *kernelConnEvent) string {
	switch unix.Errno(e.Error) {
	case 0:
		if e.State == kernelTcpStateTCP_ESTABLISHED && e.ClosedBy == kernelClosedByCLOSED_BY_THIS_END {
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

// closedBy is which side of a connection closed it first; "" for neither.
func closedBy(e *kernelConnEvent) string {
	switch {
	case e.ClosedBy == kernelClosedByCLOSED_BY_THIS_END:
		return sideOf(e.Role)
	case e.ClosedBy == kernelClosedByCLOSED_BY_PEER && e.Role == roleServer:
		return recording.Client
	case e.ClosedBy == kernelClosedByCLOSED_BY_PEER:
		return recording.Server
	}
	return ""
}
