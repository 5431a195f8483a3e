package manyhosts

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"slowpath/internal/bucket"
	"slowpath/internal/format"
	"slowpath/internal/source/hostfs"
)

// Bounds of a reply.
const (
	maxReply      = 512 << 20 // bytes, without compression
	maxHeaderFile = 16 << 10
	maxRefusal    = 64 << 10 // bytes of a reply that is an error
)

// PrometheusOptions of NewPrometheus.
type PrometheusOptions struct {
	Token   string // of "Authorization: Bearer"; empty: none
	Headers string // file with lines "Name: value"; empty: none
	CA      string // file in PEM, in place of the system's
	Plain   bool   // a token or headers may go to another host without TLS
}

// Prometheus is one that scrapes agents: numbers alone.
type Prometheus struct {
	source string // as the user wrote it
	api    string
	header http.Header
	client *http.Client
}

// ErrPrometheus says that a Prometheus cannot be asked.
var ErrPrometheus = errors.New("Prometheus does not answer")

// IsPrometheus reports whether a source is a Prometheus.
func IsPrometheus(source string) bool {
	return strings.HasPrefix(source, "prometheus://") || strings.HasPrefix(source, "prometheuss://")
}

// NewPrometheus reads an address prometheus://HOST:9090/PREFIX (prometheuss:// with TLS). Nobody is dialled.
func NewPrometheus(source string, o PrometheusOptions) (*Prometheus, error) {
	u, err := url.Parse(source)
	if err != nil || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("that is no address of a Prometheus: write prometheus://HOST:9090, or " +
			"prometheuss://HOST/PREFIX with TLS")
	}
	if u.User != nil {
		return nil, errors.New("the address of Prometheus has a user, which others see on the command line: put a " +
			"line \"Authorization: …\" into the file of --credentials, or a token into PROMETHEUS_TOKEN")
	}
	p := &Prometheus{source: source, header: http.Header{}}
	if o.Headers != "" {
		if p.header, err = headersOf(o.Headers); err != nil {
			return nil, err
		}
	}
	if o.Token != "" {
		p.header.Set("Authorization", "Bearer "+o.Token)
	}
	to := url.URL{Scheme: "https", Host: u.Host, Path: strings.TrimSuffix(u.Path, "/") + "/api/v1/query_range"}
	if u.Scheme == "prometheus" {
		to.Scheme = "http"
		if len(p.header) > 0 && !o.Plain && !onThisHost(u.Hostname()) {
			return nil, errors.New("it is not encrypted, and not on this host: others could read the credentials; " +
				"use prometheuss://, or --plain if the network is trusted")
		}
	}
	if u.Port() == "" && to.Scheme == "http" {
		to.Host = net.JoinHostPort(u.Hostname(), "9090")
	}
	p.api = to.String()
	secure, err := bucket.TLS(o.CA)
	if err != nil {
		return nil, err
	}
	p.client = &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSClientConfig: secure, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		},
		// another host is not sent what is secret
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p, nil
}

func onThisHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// headersOf reads a file of headers. Their values are in no error.
func headersOf(file string) (http.Header, error) {
	b, err := hostfs.ReadRegular(hostfs.Root{}, file, maxHeaderFile)
	if err != nil {
		return nil, err
	}
	lines := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(bytes.TrimSpace(b), "\r\n\r\n"...))))
	header, err := lines.ReadMIMEHeader()
	if err != nil || len(header) == 0 {
		return nil, fmt.Errorf("a line of %s is no header: write \"Name: value\"", file)
	}
	return http.Header(header), nil
}

// Close ends its connections.
func (p *Prometheus) Close() { p.client.CloseIdleConnections() }

// ask visits the series of an expression, with its values from begin to end.
func (p *Prometheus) ask(ctx context.Context, expr string, begin, end time.Time, step time.Duration,
	visit func(model.SampleStream) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	form := url.Values{
		"query": {expr}, "start": {fmt.Sprint(begin.Unix())}, "end": {fmt.Sprint(end.Unix())},
		"step": {fmt.Sprint(int64(step / time.Second))}, "timeout": {fmt.Sprint(int64(queryTime/time.Second), "s")},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.api, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header = p.header.Clone()
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	reply, err := p.client.Do(request)
	if err != nil {
		return p.failed(ctx, err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return p.refused(reply)
	}
	err = seriesOf(http.MaxBytesReader(nil, reply.Body, maxReply), visit)
	if tooLarge := (&http.MaxBytesError{}); errors.As(err, &tooLarge) {
		return fmt.Errorf("the reply of %s has more than %s: ask for less, by --cluster or --last", p.source,
			format.Bytes(maxReply))
	}
	if errors.Is(err, errReply) || ctx.Err() != nil {
		return p.failed(ctx, err)
	}
	return err
}

// failed says why there is no reply, without the address once more.
func (p *Prometheus) failed(ctx context.Context, err error) error {
	var request *url.Error
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("nothing within %s: ask for less, by --cluster or --last", queryTime)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &request):
		err = request.Err
	}
	return fmt.Errorf("%w: %s: %w", ErrPrometheus, p.source, err)
}

// refused says what a reply means that is none.
func (p *Prometheus) refused(reply *http.Response) error {
	var said struct{ Error string }
	b, _ := io.ReadAll(io.LimitReader(reply.Body, maxRefusal)) // what there is of it
	_ = json.Unmarshal(b, &said)                               // it may be none of Prometheus
	why := cmp.Or(said.Error, "HTTP "+reply.Status)
	switch code := reply.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		why += ": give a token in PROMETHEUS_TOKEN, or headers in the file of --credentials"
	case code == http.StatusNotFound || code >= 300 && code < 400:
		why += ": give the path before /api/v1, as prometheuss://HOST/PREFIX"
	case code == http.StatusUnprocessableEntity || code == http.StatusServiceUnavailable:
		why += ": ask for less, by --cluster or --last"
	}
	return fmt.Errorf("%w: %s: %s", ErrPrometheus, p.source, why)
}

var errReply = errors.New("it does not answer as a Prometheus does: correct the address")

// seriesOf reads a reply, one series at a time.
func seriesOf(from io.Reader, visit func(model.SampleStream) error) error {
	dec := json.NewDecoder(from)
	var status, refusal string
	err := fields(dec, func(name string) error {
		switch name {
		case "status":
			return dec.Decode(&status)
		case "error":
			return dec.Decode(&refusal)
		case "data":
			return fields(dec, func(name string) error {
				if name != "result" {
					return dec.Decode(new(json.RawMessage))
				}
				return elements(dec, visit)
			})
		}
		return dec.Decode(new(json.RawMessage))
	})
	switch tooLarge := (&http.MaxBytesError{}); {
	case err == nil && status == "success", errors.As(err, &tooLarge), errors.Is(err, errTooMany):
		return err
	case err == nil:
		err = errors.New(cmp.Or(refusal, "no success"))
	}
	return fmt.Errorf("%w (%w)", errReply, err)
}

// fields visits the fields of an object, whose values visit reads.
func fields(dec *json.Decoder, visit func(name string) error) error {
	if err := delimiter(dec, '{'); err != nil {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err == nil {
			err = visit(fmt.Sprint(name))
		}
		if err != nil {
			return err
		}
	}
	return delimiter(dec, '}')
}

// elements visits the series of a result.
func elements(dec *json.Decoder, visit func(model.SampleStream) error) error {
	if err := delimiter(dec, '['); err != nil {
		return err
	}
	for dec.More() {
		var s model.SampleStream
		err := dec.Decode(&s)
		if err == nil {
			err = visit(s)
		}
		if err != nil {
			return err
		}
	}
	return delimiter(dec, ']')
}

func delimiter(dec *json.Decoder, want json.Delim) error {
	got, err := dec.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%v in place of %v", got, want)
	}
	return err
}
