package clients

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"slowpath/internal/lab/clients/programs/protocol"
)

// Requests is a closed-loop load of HTTP requests on the service of a client program: each connection waits for its
// response before it sends the next request.
type Requests struct {
	Connections int
	Warmup      time.Duration // requests that begin in this time are not counted
	Duration    time.Duration
	// Rate is requests per second of all connections; 0: each sends again as soon as it can. One that is late does not
	// catch up.
	Rate float64
}

// Make loads the service at HOST:PORT and returns what its clients measured. Responses other than 200 are errors of
// kind "HTTP".
func (q Requests) Make(ctx context.Context, addr string) (Summary, error) {
	if q.Connections <= 0 || q.Duration <= 0 {
		return Summary{}, fmt.Errorf("loading http://%s: %d connections for %v; give at least one connection and a "+
			"duration", addr,
			q.Connections, q.Duration)
	}
	ctx, cancel := context.WithTimeout(ctx, q.Warmup+q.Duration)
	defer cancel()
	transport := &http.Transport{
		MaxIdleConns: 0, MaxIdleConnsPerHost: q.Connections, MaxConnsPerHost: q.Connections,
		DisableCompression: true,
	}
	defer transport.CloseIdleConnections()
	tally := protocol.NewTally(time.Now().Add(q.Warmup))
	var wg sync.WaitGroup
	for id := range q.Connections {
		wg.Go(func() {
			due := time.Now().Add(q.gap() * time.Duration(id) / time.Duration(q.Connections))
			for comes(ctx, due) {
				start := time.Now()
				due = later(due.Add(q.gap()), start)
				err := get(ctx, transport, "http://"+addr+"/")
				if err != nil && ctx.Err() != nil {
					return // interrupted by the end of the load
				}
				tally.Add(start, err)
			}
		})
	}
	wg.Wait()
	s := tally.Summary()
	s.Library, s.Dials = "net/http", -1
	return s, nil
}

// gap is the time between two requests of a connection.
func (q Requests) gap() time.Duration {
	if q.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(q.Connections) / q.Rate * float64(time.Second))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// comes reports whether it is t before ctx ends.
func comes(ctx context.Context, t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// statusError is a response other than 200.
type statusError struct {
	code int
	text string
}

func (e statusError) Error() string { return fmt.Sprintf("HTTP %d: %s", e.code, e.text) }

// textLimit bounds what is kept of a response that is an error, in bytes.
const textLimit = 200

func get(ctx context.Context, transport http.RoundTripper, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, textLimit)) // as far as it came
		_, _ = io.Copy(io.Discard, response.Body)                       // so that the connection can be reused
		return statusError{response.StatusCode, string(text)}
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
