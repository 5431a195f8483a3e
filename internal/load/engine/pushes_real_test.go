//go:build linux

package engine

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// pushing answers all requests, and sends push messages for as long as they are taken, from the n-th request on.
func pushing(c net.Conn, n int) {
	defer c.Close()
	var writing sync.Mutex
	requests := resp.NewReader(c, resp.Limits{})
	for i := 0; ; i++ {
		if _, err := requests.Read(); err != nil {
			return
		}
		writing.Lock()
		_, err := c.Write([]byte("+OK\r\n"))
		writing.Unlock()
		if err != nil {
			return
		}
		if i == n {
			go func() {
				for pushes := bytes.Repeat([]byte(">2\r\n+a\r\n:1\r\n"), 100_000); err == nil; {
					writing.Lock()
					_, err = c.Write(pushes)
					writing.Unlock()
				}
			}()
		}
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestEndlessPushes: a server that sends push messages without end does not keep a load from its end.
func TestEndlessPushes(t *testing.T) {
	needs.Real(t)
	for name, change := range map[string]func(*Options){
		"several connections": func(o *Options) { o.Connections = 2 },
		"one connection":      func(*Options) {},
		"a pool":              func(o *Options) { o.Pool, o.Workers = 1, 2 },
		"TLS":                 func(o *Options) { o.Target.TLS = &target.TLSOptions{Insecure: true} },
		"requests":            func(o *Options) { o.Duration, o.Requests, o.Timeout = 0, 2, time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			at, err := target.Parse(l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			o := Options{
				Target: at, Clock: clock.New(), Workload: simple(t, "get", 3), Connections: 1, Pipeline: 1, Threads: 1,
				Duration: 200 * time.Millisecond, Drain: 100 * time.Millisecond, Arrivals: Uniform,
			}
			change(&o)
			if o.Target.TLS != nil {
				l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}})
			}
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go pushing(c, 1)
				}
			}()
			ended := make(chan error, 1)
			go func() { _, err := Run(t.Context(), o); ended <- err }()
			await.Until(t, "the load ends", func() bool { return len(ended) > 0 })
			if err := <-ended; err != nil && !strings.Contains(err.Error(), "no reply") {
				t.Error(err)
			}
		})
	}
}
