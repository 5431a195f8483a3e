package bucket

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"slowpath/internal/source/hostfs"
)

// Options of Open. What is empty is read from the environment, as the tools of AWS do.
type Options struct {
	Endpoint    string // https://HOST:PORT; empty: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or AWS itself
	Region      string // empty: AWS_REGION, AWS_DEFAULT_REGION, or us-east-1
	Credentials string // file as ~/.aws/credentials; empty: see keys
	CA          string // file in PEM, in place of the system's; empty: AWS_CA_BUNDLE
	Plain       bool   // an endpoint on another host may be without TLS
	Flags       string // what the flags of these begin with, for errors: --recordings
	// Dial connects; nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	scheme       = "s3://"
	amazon       = "https://s3.amazonaws.com" // the library adds the region
	maxFileBytes = 1 << 20                    // of a file of certificates or of a key
)

// Open reads an address s3://BUCKET/PREFIX. Nobody is dialled. A bucket of AWS is a part of the name of its host, any
// other of the path.
func Open(text string, o Options) (*Bucket, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme+"://" != scheme || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("that is no address of a bucket: write s3://BUCKET/PREFIX")
	}
	if err := s3utils.CheckValidBucketNameStrict(u.Host); err != nil {
		return nil, fmt.Errorf("%q is no name of a bucket (%w): write s3://BUCKET/PREFIX", u.Host, err)
	}
	to, err := o.endpoint()
	if err != nil {
		return nil, err
	}
	through, err := o.transport()
	if err != nil {
		return nil, err
	}
	keys, err := o.keys()
	if err != nil {
		return nil, err
	}
	b := &Bucket{name: u.Host, prefix: strings.Trim(u.Path, "/"), flags: o.Flags}
	if b.prefix != "" {
		b.prefix += "/"
	}
	b.client, err = minio.New(to.Host, &minio.Options{
		Secure: to.Scheme == "https", Creds: keys, Transport: through, MaxRetries: tries,
		Region: cmp.Or(o.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1"),
	})
	return b, err
}

func (o Options) endpoint() (*url.URL, error) {
	text := cmp.Or(o.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), amazon)
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" ||
		u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the endpoint is no address of a host: write https://HOST:PORT")
	case u.Scheme == "http" && !o.Plain && !loopback(u.Hostname()):
		return nil, fmt.Errorf("http://%s is not encrypted, and not on this host: use https://, or %s-plain if the "+
			"network is trusted", u.Host, o.Flags)
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// TLS trusts the certificates of a file in PEM, or those of the system where none is named.
func TLS(file string) (*tls.Config, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return secure, nil
	}
	pem, err := hostfs.ReadRegular(hostfs.Root{}, file, maxFileBytes)
	if err != nil {
		return nil, err
	}
	secure.RootCAs = x509.NewCertPool()
	if !secure.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return secure, nil
}

func (o Options) transport() (http.RoundTripper, error) {
	secure, err := TLS(cmp.Or(o.CA, os.Getenv("AWS_CA_BUNDLE")))
	if err != nil {
		return nil, err
	}
	dial := o.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTime}).DialContext
	}
	return bounded{&http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial,
		TLSClientConfig: secure, TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: answerTime,
		DisableCompression: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
	}}, nil
}

// bounded bounds pages of lists: the library reads them into memory.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Has("list-type") {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxPage), answer.Body}
	}
	return answer, err
}
