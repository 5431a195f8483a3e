package fleet

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificates is a CA and one certificate for all servers of a group, which they use as clients of each other too.
// PEM.
type certificates struct{ ca, cert, key []byte }

const (
	certificateLife = 365 * 24 * time.Hour
	clockSkew       = time.Hour
)

// newKey makes the server's key. A handshake with RSA costs a server several times as much as one with ECDSA, and more
// with a longer key.
func newKey(bits int) (crypto.Signer, error) {
	if bits > 0 {
		return rsa.GenerateKey(rand.Reader, bits)
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// newCertificates are for localhost and the address.
func newCertificates(address net.IP, rsaBits int) (certificates, error) {
	fail := func(err error) (certificates, error) {
		return certificates{}, fmt.Errorf("making certificates: %w", err)
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "slowpath lab CA"}, IsCA: true,
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(certificateLife), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return fail(err)
	}
	key, err := newKey(rsaBits)
	if err != nil {
		return fail(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, address},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return fail(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fail(err)
	}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return certificates{block("CERTIFICATE", caDER), block("CERTIFICATE", der), block("PRIVATE KEY", keyDER)}, nil
}

// write puts the files ca.crt, server.crt and server.key into the directory of a server.
func (c certificates) write(i *Info) error {
	i.CACert, i.Cert, i.Key = filepath.Join(i.Dir, "ca.crt"), filepath.Join(i.Dir, "server.crt"), filepath.Join(i.Dir,
		"server.key")
	for path, body := range map[string][]byte{i.CACert: c.ca, i.Cert: c.cert, i.Key: c.key} {
		if err := os.WriteFile(path, body, 0o600); err != nil {
			return fmt.Errorf("writing certificates: %w", err)
		}
	}
	return nil
}
