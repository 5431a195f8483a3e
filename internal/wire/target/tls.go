package target

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// config reads the certificate files. The roots are those of --cacert and --cacertdir, or else the system's.
func (o TLSOptions) config(t Target) (*tls.Config, error) {
	config := &tls.Config{ServerName: o.SNI, InsecureSkipVerify: o.Insecure}
	if config.ServerName == "" {
		config.ServerName = t.Host // crypto/tls leaves an IP out of the hello, and verifies it
	}
	if config.ServerName == "" && !o.Insecure {
		err := badTarget("TLS over a unix socket needs --sni NAME to check the certificate against, or --insecure")
		return nil, newError(t, nil, err.Error(), "", err)
	}
	if o.CACert != "" || o.CACertDir != "" {
		roots, err := o.roots()
		if err != nil {
			return nil, fileError(t, err, "check --cacert and --cacertdir")
		}
		config.RootCAs = roots
	}
	if o.Cert != "" || o.Key != "" {
		pair, err := loadPair(o.Cert, o.Key)
		if err != nil {
			return nil, fileError(t, fmt.Errorf("client certificate: %w", err), "check --cert and --key (PEM, "+
				"without passphrase)")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func fileError(t Target, err error, fix string) *Error {
	return newError(t, ErrCertFile, err.Error(), fix, err)
}

func (o TLSOptions) roots() (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if o.CACert != "" {
		pem, err := readPEM(o.CACert)
		if err != nil {
			return nil, err
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no PEM certificate", o.CACert)
		}
	}
	if o.CACertDir == "" {
		return pool, nil
	}
	return pool, addDir(pool, o.CACertDir)
}

func loadPair(cert, key string) (tls.Certificate, error) {
	certPEM, err := readPEM(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyPEM, err := readPEM(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}

// maxPEMBytes is far more than the bundle of all public authorities has: 220 kB.
const maxPEMBytes = 16_000_000

// readPEM reads a file of certificates or keys. A device such as /dev/zero has no end.
func readPEM(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Mode()&os.ModeDevice != 0 {
		return nil, fmt.Errorf("%s is a device: give a PEM file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxPEMBytes+1))
	if err == nil && len(b) > maxPEMBytes {
		err = fmt.Errorf("%s has more than %d MB: give a PEM file", path, maxPEMBytes/1_000_000)
	}
	return b, err
}

// addDir adds every certificate in the directory. OpenSSL adds only files named by their hash, since it finds them by
// name.
func addDir(pool *x509.CertPool, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // Stat: the hashes are symbolic links
			continue
		}
		if pem, err := readPEM(path); err == nil && pool.AppendCertsFromPEM(pem) {
			found = true
		}
	}
	if !found {
		return fmt.Errorf("%s holds no PEM certificate", dir)
	}
	return nil
}

// explainHandshake says why a handshake failed.
func explainHandshake(t Target, err error, after time.Duration) *Error {
	var (
		header    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &header):
		return newError(t, ErrNotTLS, "", "drop --tls, or write redis:// instead of rediss://", err)
	case errors.As(err, &authority):
		return newError(t, ErrUnknownAuthority, "", "add --cacert FILE, or --insecure to check nothing", err)
	case errors.As(err, &name):
		return explainName(t, name, err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return newError(t, ErrCertificate, fmt.Sprintf("valid from %s to %s",
			invalid.Cert.NotBefore.Format(time.DateOnly),
			invalid.Cert.NotAfter.Format(time.DateOnly)), "renew it, or check the clock of this host; --insecure "+
			"checks nothing", err)
	case errors.As(err, &invalid):
		return newError(t, ErrCertificate, invalid.Error(), "", err)
	case timedOut(err):
		return newError(t, ErrTimeout, fmt.Sprintf("connected, but no TLS handshake in %v", round(after)),
			"a plain Redis may wait like this: try without --tls", err)
	case hungUp(err):
		return newError(t, nil, "the server closed the connection during the TLS handshake",
			"it may be plain (drop --tls), have no room (maxclients) or refuse this host (a proxy, bind, a firewall)",
			err)
	}
	if e := explainAlert(t, err); e != nil {
		return e
	}
	return newError(t, nil, "TLS handshake: "+innermost(err).Error(), "", err)
}

// explainName lists the names of the certificate, or says that it has none: Redis's own gen-test-certs.sh makes such
// certificates, and redis-cli, which does not check names, accepts them.
func explainName(t Target, name x509.HostnameError, err error) *Error {
	var names []string
	if name.Certificate != nil {
		names = append(names, name.Certificate.DNSNames...)
		for _, ip := range name.Certificate.IPAddresses {
			names = append(names, ip.String())
		}
	}
	if len(names) == 0 {
		return newError(t, ErrHostname, "it names no host at all (no subjectAltName)",
			"issue one with a subjectAltName; --insecure checks nothing", err)
	}
	return newError(t, ErrHostname, fmt.Sprintf("it is for %s, not %s", shorten(names), name.Host),
		"connect by that name, or add --sni "+names[0], err)
}

// shorten keeps the names of a certificate on one line; some have hundreds.
func shorten(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// explainAlert describes a TLS alert of the server, nil if err is none. In TLS 1.3 a server checks the client's
// certificate after the client's handshake is over, so this alert mostly comes with the first Read. crypto/tls does
// not export the alert's number; its texts are those of src/crypto/tls/alert.go. OpenSSL before TLS 1.3 sends
// "handshake failure" for a missing certificate, among other things.
func explainAlert(t Target, err error) *Error {
	var remote *net.OpError
	if !errors.As(err, &remote) || remote.Op != "remote error" {
		return nil
	}
	alert := remote.Err.Error()
	given := t.TLS != nil && t.TLS.Cert != ""
	switch strings.TrimPrefix(alert, "tls: ") {
	case "certificate required":
		return newError(t, ErrClientCert, alert, "add --cert FILE --key FILE", err)
	case "bad certificate", "unsupported certificate", "revoked certificate", "expired certificate",
		"unknown certificate",
		"unknown certificate authority", "handshake failure", "access denied":
		if given {
			return newError(t, ErrClientCert, alert, "check that the server's tls-ca-cert-file signed --cert", err)
		}
		return newError(t, ErrClientCert, alert, "the server may want --cert FILE --key FILE", err)
	case "unrecognized name":
		return newError(t, ErrHostname, alert, "the server knows no such name: add --sni NAME", err)
	case "protocol version not supported":
		return newError(t, nil, alert, "this client speaks TLS 1.2 and 1.3: check the server's tls-protocols", err)
	}
	return newError(t, nil, alert, "", err)
}
