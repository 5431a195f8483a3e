package bucket_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slowpath/internal/bucket"
)

// answering is a bucket whose server answers as told. Its key is in the environment.
func answering(t *testing.T, answer http.HandlerFunc) *bucket.Bucket {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_S3", server.URL)
	b, err := bucket.Open("s3://incidents/redis/", bucket.Options{Flags: "--recordings"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTriedAgain: what a server cannot take at the moment is sent again, all of it, and not for ever.
func TestTriedAgain(t *testing.T) {
	var got []string
	busy := 2
	b := answering(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("If-None-Match")+" "+fmt.Sprint(len(text)))
		if len(got) <= busy {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	put := func() error { return b.PutIfAbsent(t.Context(), "k", strings.NewReader("text"), 4) }
	if err := put(); err != nil || len(got) != 3 || got[0] != got[2] ||
		!strings.HasPrefix(got[0], "PUT /incidents/redis/k * ") {
		t.Errorf("%q, %v", got, err)
	}
	got, busy = nil, 1000
	if err := put(); err == nil || len(got) != 4 || !strings.Contains(err.Error(), "503") {
		t.Errorf("%d tries, %v", len(got), err)
	}
}

// TestEndlessList: pages without an end are read as long as the caller wants more.
func TestEndlessList(t *testing.T) {
	pages := 0
	b := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		pages++
		fmt.Fprintf(w, "<ListBucketResult><IsTruncated>true</IsTruncated>"+
			"<NextContinuationToken>%d</NextContinuationToken>", pages)
		for i := range 1000 {
			fmt.Fprintf(w, "<Contents><Key>redis/%d-%d</Key><Size>1</Size></Contents>", pages, i)
		}
		fmt.Fprint(w, "</ListBucketResult>")
	})
	n := 0
	if err := b.List(t.Context(), "", func(bucket.Object) bool { n++; return n < 2500 }); err != nil || n != 2500 ||
		pages != 3 {
		t.Errorf("%d objects of %d pages, %v", n, pages, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n = 0
	err := b.List(ctx, "", func(bucket.Object) bool {
		if n++; n == 1 {
			cancel()
		}
		return true
	})
	if !errors.Is(err, context.Canceled) || n != 1000 {
		t.Errorf("%d objects, %v", n, err)
	}
}

// TestHostileServer: a page and an object without an end are bounded.
func TestHostileServer(t *testing.T) {
	endless := func(w http.ResponseWriter, begin, again string) {
		_, err := io.WriteString(w, begin)
		for err == nil {
			_, err = io.WriteString(w, strings.Repeat(again, 1000))
		}
	}
	b := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("list-type") {
			endless(w, "<ListBucketResult>", "<Contents></Contents>")
		}
		w.Header().Set("Last-Modified", "Sat, 28 Nov 2026 03:12:07 GMT")
		endless(w, "", "x")
	})
	if err := b.List(t.Context(), "", func(bucket.Object) bool { return true }); err == nil {
		t.Error("a page without an end was read")
	}
	var got bytes.Buffer
	if err := b.Get(t.Context(), "k", &got, 1<<20); !errors.Is(err, bucket.ErrTooLarge) || got.Len() > 1<<20 {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
}

// TestRefusals: what a real server does not refuse here is said in one line with the fix.
func TestRefusals(t *testing.T) {
	for code, want := range map[string]string{
		"RequestTimeTooSkewed":         "the clock of this host is wrong by 15 minutes or more",
		"ExpiredToken":                 "AWS_SESSION_TOKEN or --recordings-credentials",
		"AuthorizationHeaderMalformed": `another region, "eu-north-1" (AuthorizationHeaderMalformed, 403): give it in`,
		"NotImplemented":               "use a server that knows If-None-Match",
		"Odd":                          `it says "a\nb" (Odd, 403)`,
	} {
		t.Run(code, func(t *testing.T) {
			b := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprintf(w, "<Error><Code>%s</Code><Message>a\nb</Message><Region>eu-north-1</Region></Error>", code)
			})
			err := b.PutIfAbsent(t.Context(), "k", strings.NewReader("text"), 4)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Error(err)
			}
		})
	}
}

// TestRole: without a key, that of the container is used; where there is none, that is said.
func TestRole(t *testing.T) {
	var signed string
	b := answering(t, func(_ http.ResponseWriter, r *http.Request) { signed = r.Header.Get("Authorization") })
	has := true
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !has {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprint(w, `{"AccessKeyId": "ofrole", "SecretAccessKey": "s", "Expiration": "2199-01-01T00:00:00Z"}`)
	}))
	defer role.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", role.URL)
	put := func() (err error) {
		if b, err = bucket.Open("s3://incidents", bucket.Options{Flags: "--recordings"}); err != nil {
			t.Fatal(err)
		}
		return b.PutIfAbsent(t.Context(), "k", strings.NewReader("text"), 4)
	}
	if err := put(); err != nil || !strings.Contains(signed, "Credential=ofrole/") {
		t.Errorf("%q, %v", signed, err)
	}
	has = false
	if err := put(); err == nil || !strings.Contains(err.Error(), "no access key") ||
		!strings.HasSuffix(err.Error(), "AWS_SECRET_ACCESS_KEY, or --recordings-credentials FILE") {
		t.Error(err)
	}
}

// TestOpen: what cannot be opened is said before anything is sent, without the secrets in it.
func TestOpen(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for address, c := range map[string]struct {
		o    bucket.Options
		want string
	}{
		"s3://incidents/a/b":      {bucket.Options{}, ""},
		"s3://in":                 {bucket.Options{}, "is no name of a bucket"},
		"https://incidents":       {bucket.Options{}, "write s3://BUCKET/PREFIX"},
		"s3://key:hidden@bucket":  {bucket.Options{}, "write s3://BUCKET/PREFIX"},
		"s3://incidents/local":    {bucket.Options{Endpoint: "http://localhost:8333"}, ""},
		"s3://incidents/plain":    {bucket.Options{Endpoint: "http://10.0.0.1:8333"}, "--recordings-plain"},
		"s3://incidents/trusted":  {bucket.Options{Endpoint: "http://10.0.0.1:8333", Plain: true}, ""},
		"s3://incidents/path":     {bucket.Options{Endpoint: "https://10.0.0.1/s3"}, "write https://HOST:PORT"},
		"s3://incidents/ftp":      {bucket.Options{Endpoint: "ftp://u:hidden@10.0.0.1"}, "write https://HOST:PORT"},
		"s3://incidents/nokey":    {bucket.Options{Credentials: empty}, "aws_access_key_id"},
		"s3://incidents/nofile":   {bucket.Options{Credentials: "/no/file"}, "/no/file"},
		"s3://incidents/noca":     {bucket.Options{CA: "/no/file"}, "/no/file"},
		"s3://incidents/emptyca":  {bucket.Options{CA: empty}, "no certificate in PEM"},
		"s3://incidents/?x=y":     {bucket.Options{}, "write s3://BUCKET/PREFIX"},
		"s3://incidents:443/port": {bucket.Options{}, "is no name of a bucket"},
	} {
		c.o.Flags = "--recordings"
		b, err := bucket.Open(address, c.o)
		switch {
		case c.want == "":
			if err != nil || strings.TrimSuffix(b.String(), "/") != address {
				t.Errorf("%s: %v, %v", address, b, err)
			}
		case err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden"):
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestTLS: a server needs a certificate that is valid by the file of authorities.
func TestTLS(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(ca, pem.EncodeToMemory(&block), 0o600); err != nil {
		t.Fatal(err)
	}
	put := func(o bucket.Options) error {
		b, err := bucket.Open("s3://incidents", o)
		if err != nil {
			t.Fatal(err)
		}
		return b.PutIfAbsent(t.Context(), "k", strings.NewReader("text"), 4)
	}
	if err := put(bucket.Options{Endpoint: server.URL, CA: ca}); err != nil {
		t.Error(err)
	}
	if err := put(bucket.Options{Endpoint: server.URL}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
	var dialled string
	refuse := func(_ context.Context, _, address string) (net.Conn, error) {
		dialled = address
		return nil, errors.New("nobody is there")
	}
	err := put(bucket.Options{Region: "eu-north-1", Dial: refuse})
	if err == nil || dialled != "incidents.s3.dualstack.eu-north-1.amazonaws.com:443" ||
		!strings.HasPrefix(err.Error(), "it cannot be reached: ") {
		t.Errorf("%q: %v", dialled, err)
	}
}
