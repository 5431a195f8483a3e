package target

import (
	"net/netip"
	"testing"
)

func TestMayLogIn(t *testing.T) {
	own := &TLSOptions{CACert: "ca.crt"}
	for _, c := range []struct {
		name         string
		remote, peer string
		change       func(*Target)
		want         bool
	}{
		{"same host", "203.0.113.5:6379", "203.0.113.5:6380", nil, true},
		{"loopback", "127.0.0.1:7001", "127.0.0.1:7002", nil, true},
		{"a private network", "10.0.0.5:6379", "10.1.0.6:6379", nil, true},
		{"IPv6", "[fd00::5]:6379", "fd00::6:6379", nil, true},
		{"seen on the server's host", "127.0.0.1:7001", "10.0.0.6:7001", nil, true},
		{"somewhere", "10.0.0.5:6379", "203.0.113.7:6379", nil, false},
		{"a public cluster", "203.0.113.5:6379", "203.0.113.6:6379", nil, false},
		{"this host", "10.0.0.5:6379", "127.0.0.1:6380", nil, false},
		{"link-local", "10.0.0.5:6379", "169.254.169.254:80", nil, false},
		{"a name", "10.0.0.5:6379", "evil.example:6379", nil, false},
		{"from outside", "203.0.113.5:6379", "10.0.0.6:6379", nil, false},
		{"no password", "10.0.0.5:6379", "203.0.113.7:6379", func(t *Target) {
			t.Password = ""
		}, true},
		{"own CA", "10.0.0.5:6379", "203.0.113.7:6379", func(t *Target) { t.TLS = own }, true},
		{"any CA", "10.0.0.5:6379", "203.0.113.7:6379", func(t *Target) {
			t.TLS = &TLSOptions{}
		}, false},
		{"any certificate", "10.0.0.5:6379", "203.0.113.7:6379", func(t *Target) {
			t.TLS = &TLSOptions{CACert: "ca.crt", Insecure: true}
		}, false},
	} {
		at := netip.MustParseAddrPort(c.remote)
		from := Target{Network: "tcp", Host: at.Addr().String(), Port: int(at.Port()), Password: "secret"}
		if c.change != nil {
			c.change(&from)
		}
		if got := from.MayLogIn(c.remote, from.WithAddr(c.peer)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
