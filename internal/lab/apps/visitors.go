package apps

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"sync"
	"time"

	"slowpath/internal/lab/apps/appsources/meter"
	"slowpath/internal/lab/clients/programs/protocol"
)

// visitors view the pages of a web application. Each has its own session: it keeps its cookies and its connection.
type visitors struct {
	start  time.Time
	slices *protocol.Slices
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

const (
	// Visitors is how many a web application has.
	Visitors    = 8
	pageTimeout = 10 * time.Second
	pageLimit   = 1 << 20 // bytes
)

// startVisitors starts them. They wait until the application listens, then view pages at a rate with exponential gaps.
func startVisitors(url string, o Options, out *collector) *visitors {
	ctx, cancel := context.WithCancel(context.Background())
	start := time.Now()
	v := &visitors{start: start, slices: protocol.NewSlices(start, o.Slice), cancel: cancel}
	m := meter.New(lineWriter{out})
	v.ended.Go(func() { _ = m.Report(ctx.Done()) }) // a lineWriter never fails
	for range Visitors {
		v.ended.Go(func() {
			jar, _ := cookiejar.New(nil) // never fails
			// Connections that a server has closed meanwhile are opened again by the transport.
			visitor := &http.Client{Jar: jar, Timeout: pageTimeout, Transport: &http.Transport{}}
			defer visitor.CloseIdleConnections()
			for !listens(ctx, url) {
				if !pause(ctx, 50*time.Millisecond) {
					return
				}
			}
			gap := float64(time.Second) * Visitors / o.Rate
			waits := v.slices.Worker()
			for pause(ctx, time.Duration(rand.ExpFloat64()*gap)) {
				start := time.Now()
				waits.Due(start)
				err := view(ctx, visitor, url)
				if err == nil {
					waits.Succeeded(time.Now())
				}
				if ctx.Err() == nil { // else it was interrupted
					m.Add("page", time.Since(start), err)
				}
			}
		})
	}
	return v
}

// end ends them, and writes what they have counted.
func (v *visitors) end() {
	v.cancel()
	v.ended.Wait()
}

// lineWriter passes lines on to a collector. Each write is one line, as json.Encoder does it.
type lineWriter struct{ to *collector }

func (w lineWriter) Write(line []byte) (int, error) {
	w.to.line(line)
	return len(line), nil
}

// listens reports whether something accepts connections at the address of a page.
func listens(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", request.URL.Host)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func view(ctx context.Context, visitor *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := visitor.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, pageLimit))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP %d: %.100s", response.StatusCode, text)
	}
	if err == nil && len(text) == 0 {
		err = fmt.Errorf("an empty page")
	}
	return err
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// freeAddress is a port of loopback on which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
