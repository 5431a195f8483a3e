package assistant

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"slowpath/internal/report/layout"
)

// mostDocument bounds what a command or an agent says, in bytes.
const mostDocument = 32 << 20

// Command runs this program, and gives what it prints. A code of 1 is an answer, too: findings. What is in env is added
// to the environment.
func Command(ctx context.Context, env []string, args ...string) ([]byte, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, exe, args...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // which ends a watch in good order
	c.WaitDelay = 10 * time.Second
	c.Env = append(os.Environ(), env...)
	var out, said limited
	c.Stdout, c.Stderr = &out, &said
	err = c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.full:
		return nil, fmt.Errorf("slowpath %s printed more than can be read: ask for less", args[0])
	case errors.As(err, &exit) && exit.ExitCode() != 1 || err != nil && exit == nil:
		text := layout.OneLine(strings.TrimPrefix(said.String(), "slowpath: "))
		return nil, fmt.Errorf("%s (%w)", text, err)
	}
	return out.Bytes(), nil
}

// limited keeps mostDocument bytes, and passes over what follows.
type limited struct {
	bytes.Buffer
	full bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > mostDocument {
		l.full = true
		return len(p), nil
	}
	return l.Buffer.Write(p)
}

// Agent is an agent that is asked over HTTP.
type Agent struct {
	base  *url.URL
	token string
	http  *http.Client
}

// agentTime bounds a question to an agent: a comparison may take it.
const agentTime = 2 * time.Minute

// NewAgent is that at an address, http://127.0.0.1:7380. A token goes to no other host than loopback without TLS. ca
// are certificates that its own has to be signed by, in PEM; empty: those of the system.
func NewAgent(address, token string, ca []byte) (*Agent, error) {
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("%.200q is no address of an agent: give one such as http://127.0.0.1:7380", address)
	}
	host := base.Hostname()
	if base.Scheme == "http" && token != "" && host != "127.0.0.1" && host != "::1" && host != "localhost" {
		return nil, fmt.Errorf("%s: a token goes to another host by https alone", base.Redacted())
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("there is no certificate in the file of the agent's CA")
		}
	}
	return &Agent{base, token, &http.Client{
		Timeout: agentTime, Transport: &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Get answers a GET of the agent's API.
func (a *Agent) Get(ctx context.Context, path string) ([]byte, error) {
	address := a.base.JoinPath("/").String() + strings.TrimPrefix(path, "/")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	reply, err := a.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("the agent does not answer: %w", err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, mostDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the agent does not answer: %w", err)
	case len(body) > mostDocument:
		return nil, errors.New("the agent's answer is longer than can be read: ask for less")
	case reply.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the agent says %s: %s", reply.Status, bounded(layout.OneLine(string(body))))
	}
	return body, nil
}
