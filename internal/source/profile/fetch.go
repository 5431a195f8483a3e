package profile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"slowpath/internal/source/profile/stacks"
)

// client asks one address of net/http/pprof. It follows no redirect, so that no password goes to another address.
type client struct {
	target Target
	http   *http.Client
}

func newClient(o Options, t Target) *client {
	return &client{t, &http.Client{
		Transport: &http.Transport{
			DialContext: o.Dial, ForceAttemptHTTP2: true, // which a DialContext switches off
			MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// refusal is an HTTP answer other than 200.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string {
	if r.text == "" {
		return http.StatusText(r.status)
	}
	return r.text
}

// profile reads one profile; seconds is for how long the application profiles, 0 for what it has now.
func (c *client) profile(ctx context.Context, name string, seconds int) ([]byte, error) {
	query := url.Values{}
	if seconds > 0 {
		query.Set("seconds", fmt.Sprint(seconds))
	}
	body, err := c.get(ctx, name, query, time.Duration(seconds)*time.Second+answerIn)
	if err != nil {
		return nil, err
	}
	bare, err := stacks.WithoutLabels(body)
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", c.target, name, err)
	}
	return bare, nil
}

func (c *client) get(ctx context.Context, name string, query url.Values, limit time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	u := c.target.base.JoinPath(name)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", c.target, ErrTarget)
	}
	res, err := c.http.Do(req)
	if err != nil {
		var withURL *url.Error // it quotes the URL with its password
		if errors.As(err, &withURL) {
			err = withURL.Err
		}
		return nil, fmt.Errorf("%s %w: %w", c.target, ErrUnreachable, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswers+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s%s: %w", c.target, name, err)
	case res.StatusCode != http.StatusOK:
		text := ""
		if strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") { // as the errors of net/http/pprof are
			text = strings.Join(strings.Fields(string(body[:min(len(body), 200)])), " ")
		}
		return nil, &refusal{res.StatusCode, text}
	case len(body) > maxAnswers:
		return nil, fmt.Errorf("%s%s: more than %d bytes", c.target, name, maxAnswers)
	}
	return body, nil
}
