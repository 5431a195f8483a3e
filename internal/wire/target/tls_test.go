package target

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority is a CA made for one test, and its files.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM of the certificate
	dir  string // where all its files are
}

func newAuthority(t *testing.T) *authority {
	a := &authority{dir: t.TempDir()}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key, a.file, _ = a.issue(t, "ca", template)
	return a
}

// issue signs a certificate (by itself if a has none yet) and writes NAME.crt and NAME.key.
func (a *authority) issue(t *testing.T, name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey,
	string, string,
) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	template.NotBefore = time.Now().Add(-2 * time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := template, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	crt, pemKey := filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	writePEM(t, crt, "CERTIFICATE", der)
	writePEM(t, pemKey, "EC PRIVATE KEY", keyDER)
	return cert, key, crt, pemKey
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve starts an echo server with a certificate of a; config may be nil.
func (a *authority) serve(t *testing.T, template *x509.Certificate, config *tls.Config) Target {
	t.Helper()
	_, _, crt, key := a.issue(t, "server", template)
	pair, err := tls.LoadX509KeyPair(crt, key)
	if err != nil {
		t.Fatal(err)
	}
	if config == nil {
		config = &tls.Config{}
	}
	config.Certificates = []tls.Certificate{pair}
	l := listen(t, "tcp", "127.0.0.1:0", func(conn net.Conn) { echo(tls.Server(conn, config)) })
	return parsed(t, "rediss://:S3CRET@"+l.Addr().String())
}

func forLoopback() *x509.Certificate {
	return &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"redis.test"}}
}

func TestTLS(t *testing.T) {
	a := newAuthority(t)
	target := a.serve(t, forLoopback(), nil)
	cadir := t.TempDir()
	if err := os.Symlink(a.file, filepath.Join(cadir, "0a1b2c3d.0")); err != nil { // as c_rehash makes them
		t.Fatal(err)
	}
	for name, options := range map[string]TLSOptions{
		"cacert":    {CACert: a.file},
		"cacertdir": {CACertDir: cadir},
		"sni":       {CACert: a.file, SNI: "redis.test"},
		"insecure":  {Insecure: true, SNI: "whatever"},
	} {
		t.Run(name, func(t *testing.T) {
			target.TLS = &options
			conn, phases := dial(t, target)
			roundTrip(t, conn, strings.Repeat("PING\r\n", 10_000)) // many records
			state, secure := conn.ConnectionState()
			if !secure || state.ServerName != options.SNI || phases.TLS <= 0 || phases.Connect <= 0 {
				t.Errorf("%v, server name %q, %+v", secure, state.ServerName, phases)
			}
		})
	}
}

func TestTLSErrors(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	good := a.serve(t, forLoopback(), nil)
	with := func(target Target, o TLSOptions) Target { target.TLS = &o; return target }
	trusting := TLSOptions{CACert: a.file}
	notPEM := filepath.Join(t.TempDir(), "not.pem")
	if err := os.WriteFile(notPEM, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := listen(t, "tcp", "127.0.0.1:0", func(conn net.Conn) {
		conn.Read(make([]byte, 1))
		io.WriteString(conn, "-ERR unknown command\r\n")
	})
	closing := listen(t, "tcp", "127.0.0.1:0", func(conn net.Conn) { conn.Read(make([]byte, 4096)) })
	foreign := &x509.Certificate{DNSNames: []string{"a.test", "b.test", "c.test", "d.test"}}
	forClients := forLoopback()
	forClients.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	expired := forLoopback()
	expired.NotAfter = time.Now().Add(-time.Hour)
	for name, test := range map[string]struct {
		target Target
		kind   error
		say    string
	}{
		"plain server":   {with(parsed(t, plain.Addr().String()), trusting), ErrNotTLS, "drop --tls"},
		"closing server": {with(parsed(t, closing.Addr().String()), trusting), nil, "drop --tls"},
		"system roots":   {good, ErrUnknownAuthority, "--cacert FILE"},
		"other CA":       {with(good, TLSOptions{CACert: other.file}), ErrUnknownAuthority, "--insecure"},
		"other name": {
			with(a.serve(t, foreign, nil), trusting), ErrHostname,
			"it is for a.test, b.test, c.test and 1 more, not 127.0.0.1; connect by that name, or add --sni a.test",
		},
		"no name":          {with(a.serve(t, &x509.Certificate{}, nil), trusting), ErrHostname, "subjectAltName"},
		"expired":          {with(a.serve(t, expired, nil), trusting), ErrCertificate, "renew"},
		"not for a server": {with(a.serve(t, forClients, nil), trusting), ErrCertificate, "usage"},
		"old server": {with(a.serve(t, forLoopback(), &tls.Config{
			MinVersion: tls.VersionTLS10,
			MaxVersion: tls.VersionTLS11,
		}), trusting), nil, "protocol version"},
		"no CA file":     {with(good, TLSOptions{CACert: "/nonexistent"}), ErrCertFile, "/nonexistent: no such file"},
		"no CA dir":      {with(good, TLSOptions{CACertDir: "/nonexistent"}), os.ErrNotExist, "--cacertdir"},
		"empty CA dir":   {with(good, TLSOptions{CACertDir: t.TempDir()}), ErrCertFile, "holds no PEM certificate"},
		"CA not PEM":     {with(good, TLSOptions{CACert: notPEM}), ErrCertFile, "holds no PEM certificate"},
		"no client cert": {with(good, TLSOptions{Cert: "/none.crt", Key: "/none.key"}), ErrCertFile, "/none.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Dial(testContext(t), test.target)
			if err == nil || test.kind != nil && !errors.Is(err, test.kind) || !strings.Contains(err.Error(),
				test.say) {
				t.Errorf("%v\nwant %v with %q", err, test.kind, test.say)
			}
			if err != nil && (strings.Contains(err.Error(), "S3CRET") || strings.Contains(err.Error(), "\n")) {
				t.Error(err)
			}
		})
	}
}

// TestTLSSilentServer: a plain Redis may wait for the end of a line that the hello does not contain.
func TestTLSSilentServer(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	l := listen(t, "tcp", "127.0.0.1:0", func(conn net.Conn) {
		conn.Read(make([]byte, 1))
		cancel(nil)
		io.Copy(io.Discard, conn)
	})
	_, _, err := Dial(ctx, parsed(t, "rediss://"+l.Addr().String()))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	e := explainHandshake(Target{Network: "tcp", Host: "h", Port: 1}, context.DeadlineExceeded, 1234*time.Millisecond)
	if !errors.Is(e, ErrTimeout) || !strings.Contains(e.Error(), "no TLS handshake in 1.23s; a plain Redis") {
		t.Error(e)
	}
}
