//go:build linux

package tap

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestTLS: under TLS the turns of a connection are seen, with their times and without names.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := selfSigned(t, dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("needs redis-server")
	}
	cmd := exec.Command(bin, "--port", "0", "--tls-port", fmt.Sprint(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
		"--tls-auth-clients", "no", "--save", "", "--dir", dir, "--enable-debug-command", "yes")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	r := openRaw(t, port, constants{"slow_ns": uint64(20e6)})
	var c *tls.Conn
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if c, err = tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{InsecureSkipVerify: true}); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no TLS server: ", err)
		}
	}
	defer c.Close()
	reply := make([]byte, 64)
	for _, text := range []string{command("PING"), command("DEBUG", "SLEEP", "0.05"), command("PING")} {
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(reply); err != nil {
			t.Fatal(err)
		}
	}
	calls, counts := r.finish(t)
	seen := map[uint8]int{}
	for _, e := range calls {
		if ns := e.At[3] - e.At[0]; e.Flags&flagFresh == 0 && ns >= 50e6 && ns < 1e9 && e.Flags&flagTLS != 0 {
			seen[e.Role]++
		}
	}
	if seen[roleServer] != 1 || seen[roleClient] != 1 {
		t.Errorf("the slow call was seen %d times by the server's end, %d by the client's: %v", seen[roleServer], seen[roleClient], counts)
	}
}

func selfSigned(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
