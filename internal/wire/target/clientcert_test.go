package target

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
)

func TestClientCertificate(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	usage := func() *x509.Certificate {
		return &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	}
	_, _, crt, key := a.issue(t, "client", usage())
	_, _, otherCrt, otherKey := other.issue(t, "client", usage())
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		target := a.serve(t, forLoopback(), &tls.Config{
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
			MaxVersion: version,
		})
		for name, test := range map[string]struct {
			crt, key string
			say      string // "" succeeds
		}{
			"given": {crt, key, ""},
			"none":  {"", "", "--cert FILE"},
			"other": {otherCrt, otherKey, "tls-ca-cert-file"},
		} {
			t.Run(tls.VersionName(version)+" "+name, func(t *testing.T) {
				target.TLS = &TLSOptions{CACert: a.file, Cert: test.crt, Key: test.key}
				conn, _, err := Dial(testContext(t), target)
				if err == nil { // in TLS 1.3 a refusal comes with the first Read
					defer conn.Close()
					// Whether Write or Read meets the refusal is a race; both must say why.
					if _, err = io.WriteString(conn, "PING\r\n"); err == nil {
						_, err = conn.Read(make([]byte, 6))
					}
				}
				if test.say == "" {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				if !errors.Is(err, ErrClientCert) || !strings.Contains(err.Error(), test.say) {
					t.Errorf("%v, want %q", err, test.say)
				}
			})
		}
	}
}

// TestWriteFindsAlert: the reset that follows the alert is met by a Write first.
func TestWriteFindsAlert(t *testing.T) {
	a := newAuthority(t)
	target := a.serve(t, forLoopback(), &tls.Config{ClientAuth: tls.RequireAnyClientCert})
	target.TLS = &TLSOptions{CACert: a.file}
	conn, _ := dial(t, target)
	conn.Conn = resetOnWrite{conn.Conn}
	if _, err := io.WriteString(conn, "x"); !errors.Is(err, ErrClientCert) {
		t.Error(err)
	}
}

// TestWriteKeepsWhatItRead: there was no alert but a reply, which must not be lost.
func TestWriteKeepsWhatItRead(t *testing.T) {
	a := newAuthority(t)
	target := a.serve(t, forLoopback(), nil)
	target.TLS = &TLSOptions{CACert: a.file}
	conn, _ := dial(t, target)
	if _, err := io.WriteString(conn, "bye"); err != nil {
		t.Fatal(err)
	}
	secure := conn.Conn
	conn.Conn = resetOnWrite{secure}
	if _, err := io.WriteString(conn, "x"); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "bye" {
		t.Errorf("%q, %v", got, err)
	}
}

type resetOnWrite struct{ net.Conn }

func (resetOnWrite) Write([]byte) (int, error) {
	return 0, &net.OpError{Op: "write", Err: syscall.ECONNRESET}
}

func TestExplainFirstReply(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0", echo)
	conn, _ := dial(t, parsed(t, l.Addr().String()))
	for _, hint := range []string{"--tls", "--cert"} {
		err := conn.ExplainFirstReply(io.EOF)
		if !errors.Is(err, ErrClosedEarly) || !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), hint) {
			t.Error(err)
		}
		conn.Conn = tls.Client(conn.wire, &tls.Config{InsecureSkipVerify: true})
	}
	if err := errors.New("other"); conn.ExplainFirstReply(err) != err {
		t.Error("another error was changed")
	}
}
