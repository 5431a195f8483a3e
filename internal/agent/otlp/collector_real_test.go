package otlp_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/house/await"
)

// collectors are what scripts/collector builds.
var collectors = func() string {
	cache, _ := os.UserCacheDir() // without one, nothing matches
	return filepath.Join(cache, "slowpath", "collector", "otelcol-*[0-9]")
}()

// collector is a real one that runs until the test ends, and writes what it receives to a file.
type collector struct {
	grpc, http string // addresses; both need the certificate of ca
	ca         string
	file       string
}

func startCollector(t *testing.T) collector {
	t.Helper()
	programs, err := filepath.Glob(collectors)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := collector{grpc: freeAddress(t), http: freeAddress(t), file: filepath.Join(dir, "received.json")}
	var cert, key string
	c.ca, cert, key = certificate(t, dir)
	config := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf(`
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "%s", tls: {cert_file: "%s", key_file: "%s"}}
      http: {endpoint: "%s", tls: {cert_file: "%s", key_file: "%s"}}
exporters:
  file: {path: "%s", flush_interval: 100ms}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [file]}
    metrics: {receivers: [otlp], exporters: [file]}
    logs: {receivers: [otlp], exporters: [file]}
`, c.grpc, cert, key, c.http, cert, key, c.file)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(programs[len(programs)-1], "--config", config)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Log(said.String())
		}
	})
	for _, address := range []string{c.grpc, c.http} {
		await.Until(t, "the collector listens", func() bool {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		})
	}
	return c
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// certificate makes one for this host, which is its own authority.
func certificate(t *testing.T, dir string) (ca, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "collector"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, &about, &about, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert = write("cert.pem", "CERTIFICATE", der)
	return cert, cert, write("key.pem", "EC PRIVATE KEY", secret)
}
