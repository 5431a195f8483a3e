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

// Requests is a load of HTTP requests on a client's service, in a closed loop: each connection waits for its answer
// before it asks again.
type Requests struct {
	Connections int
	Warmup      time.Duration // requests that begin before this are not counted
	Duration    time.Duration
}

// Make loads the service at HOST:PORT and returns what its users saw. Answers that are no 200 are errors, of kind
// "HTTP".
func (q Requests) Make(ctx context.Context, addr string) (Summary, error) {
	if q.Connections <= 0 || q.Duration <= 0 {
		return Summary{}, fmt.Errorf("loading http://%s: %d connections for %v; give at least one, and a time", addr,
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
	for range q.Connections {
		wg.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				err := ask(ctx, transport, "http://"+addr+"/")
				if err != nil && ctx.Err() != nil {
					return // cut off by the end of the load
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

// statusError is an answer that is no 200.
type statusError struct {
	code int
	text string
}

func (e statusError) Error() string { return fmt.Sprintf("HTTP %d: %s", e.code, e.text) }

// textLimit bounds what is kept of an answer that is an error, in bytes.
const textLimit = 200

func ask(ctx context.Context, transport http.RoundTripper, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, textLimit)) // what came of it
		_, _ = io.Copy(io.Discard, answer.Body)                       // the connection is used again
		return statusError{answer.StatusCode, string(text)}
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}
