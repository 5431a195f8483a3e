package fleettest

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// Collect listens at an address, answers nothing, and gives what was sent to it
// until now.
func Collect(t testing.TB, addr string) func() string {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { l.Close() })
	var mu sync.Mutex
	var all strings.Builder
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 4096)
				for {
					n, err := c.Read(b)
					mu.Lock()
					all.Write(b[:n])
					mu.Unlock()
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	return func() string { mu.Lock(); defer mu.Unlock(); return all.String() }
}

// Outside gives an address of this host's own, no loopback one, that leads to a server.
func Outside(t testing.TB, to string) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.To4() == nil || n.IP.IsLoopback() || n.IP.IsLinkLocalUnicast() {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(n.IP.String(), "0"))
		if err != nil {
			continue
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					s, err := net.Dial("tcp", to)
					if err != nil {
						return
					}
					defer s.Close()
					go func() { _, _ = io.Copy(s, c) }()
					_, _ = io.Copy(c, s)
				}()
			}
		}()
		return l.Addr().String()
	}
	t.Skip("this host has no address but loopback ones")
	return ""
}
