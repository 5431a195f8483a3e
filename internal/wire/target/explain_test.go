package target

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestExplainAttempt: what the kernel can say of a connect, without a network that says it.
func TestExplainAttempt(t *testing.T) {
	for _, test := range []struct {
		network string
		errno   error
		kind    error
		say     string
	}{
		{"tcp", syscall.ECONNREFUSED, ErrRefused, "nothing listens on h:1"},
		{"tcp", syscall.ETIMEDOUT, ErrTimeout, "no answer in 2s; check the address, and for a firewall"},
		{"tcp", syscall.ECONNRESET, nil, "h:1 accepts and resets the connection; a proxy"},
		{"tcp", syscall.EHOSTUNREACH, ErrUnreachable, "routes"},
		{"tcp", syscall.ENETUNREACH, ErrUnreachable, "routes"},
		{"tcp", syscall.EPERM, ErrPermission, "local firewall"},
		{"tcp", syscall.EADDRNOTAVAIL, nil, "cannot assign requested address"},
		{"unix", syscall.EACCES, ErrPermission, "unixsocketperm"},
		{"unix", syscall.ENOENT, ErrNoSocket, "-s"},
		{"unix", syscall.EAGAIN, ErrBacklog, "accepts none"},
		{"unix", syscall.EINVAL, ErrBadTarget, "107"},
	} {
		target := Target{Network: test.network, Host: "h", Port: 1, Path: "/r.sock"}
		err := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", test.errno)}
		got := explainAttempt(target, failure{"h:1", err, 2 * time.Second})
		if got.Kind != test.kind || !errors.Is(got, test.errno) || !strings.Contains(got.Error(), test.say) {
			t.Errorf("%v: %v", test.errno, got)
		}
	}
}

func TestExplainAlert(t *testing.T) {
	target := Target{Network: "tcp", Host: "h", Port: 1}
	for alert, kind := range map[string]error{
		"tls: certificate required": ErrClientCert,
		"tls: handshake failure":    ErrClientCert,
		"tls: unrecognized name":    ErrHostname,
		"tls: internal error":       nil,
	} {
		got := explainAlert(target, &net.OpError{Op: "remote error", Err: errors.New(alert)})
		if got == nil || got.Kind != kind || !strings.Contains(got.Error(), alert) {
			t.Errorf("%s: %v", alert, got)
		}
	}
	if got := explainAlert(target, &net.OpError{Op: "read", Err: syscall.ECONNRESET}); got != nil {
		t.Error(got)
	}
}

func TestRound(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234567890: "1.23s", 45_678_901: "45.68ms", 1234: "1.23µs", 7: "7ns",
	} {
		if got := round(d).String(); got != want {
			t.Errorf("round(%d) = %s, want %s", d, got, want)
		}
	}
}
