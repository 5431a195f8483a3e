package codis

import (
	"context"
	"net"
)

// Listen serves at a port of loopback until ctx ends: for tests, whose own program a fleet starts as the proxy.
func Listen(ctx context.Context, port string, servers []string) error {
	p, err := New(servers)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	return p.Serve(ctx, l)
}
