// Package web is the agent's HTTP side: its pages, and the JSON API that they and scripts use.
//
// It shows what the agent keeps (internal/agent/incidents) and what its watch sees now (internal/live). It watches and
// judges nothing itself: what changes something or costs CPU time is a function of Options. All that is shown was said
// by others: it is bounded, and escaped by html/template or set as text by the scripts of the pages.
package web

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"slowpath/internal/agent/door"
	"slowpath/internal/agent/folder"
	"slowpath/internal/agent/incidents"
	"slowpath/internal/live"
)

// Options are what the pages show, and who may see it.
type Options struct {
	// Listen is the address that is served, as "127.0.0.1:7380". It decides whether a token and TLS are needed, and
	// which names in the Host header are this agent's.
	Listen string
	// HostNames are further names in the Host header (--host-name), such as that of a proxy in front.
	HostNames []string
	// Token lets in who knows it (--token-file); empty: everybody who reaches the address, which must be loopback.
	Token string
	// Tenants are by their tokens, of a page of many hosts: who has one of these sees what that tenant has.
	Tenants map[string]string
	// TLS is what its door has a certificate for (--tls-cert, --tls-key); nil: plain HTTP, on loopback only.
	TLS *tls.Config
	// AllowWrites lets other hosts mark times and save incidents (--allow-writes); on loopback they may in any case.
	AllowWrites bool

	Store   *incidents.Store
	History *incidents.History // nil: no minutes are kept
	View    *live.View
	// Slow is the slow threshold, zero where it is not known yet.
	Slow func() time.Duration
	// Health says how the agent is; it is called for each look at it, and must be cheap.
	Health func() Health
	// Trigger begins an incident for a reason of one sentence; the error says in one sentence why it does not.
	Trigger func(reason string) (id string, err error)
	// Save writes a window of the ring as a recording of a name that is not there.
	Save func(ctx context.Context, from, to time.Time, in *folder.Folder, name string) error
	// Mark is told of each mark that somebody makes; nil: nobody is.
	Mark func(incidents.Mark)
	// Compare holds two recordings against each other, and gives slowpath.compare/v1.
	Compare func(ctx context.Context, before, after string) ([]byte, error)
	// Metrics serves /metrics; nil: there is none.
	Metrics http.Handler

	Temp    *folder.Folder // for recordings that are compared
	Version string
	// Log gets one line for what an operator should know, such as logins that failed; nil: nowhere.
	Log func(line string)
	// Now is the time; nil: time.Now.
	Now func() time.Time
}

// Bounds of what the server takes from others, and for how long.
const (
	maxHeaderBytes    = 32 << 10 // more than its door takes
	headerTimeout     = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 30 * time.Second // of a reply; of a stream or a file: of each part
	idleTimeout       = time.Minute
	shutdownTimeout   = 3 * time.Second
	maxLogLinesPerMin = 20
)

// Server is the agent's HTTP server.
type Server struct {
	site
	o         Options
	handler   http.Handler
	stream    *stream
	columns   *columnCache
	overviews *overviewCache
	compares  *comparisons
	started   time.Time
}

// New checks the options. The error names the flags that are missing.
func New(o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Store == nil || o.View == nil || o.Health == nil {
		return nil, errors.New("web: no store, no view or no health")
	}
	s := &Server{o: o, started: o.Now()}
	var err error
	if s.site, err = newSite(o, "the agent", navigation, s.state); err != nil {
		return nil, err
	}
	s.stream = newStream(o.View, o.Now)
	s.columns, s.overviews = newColumnCache(), &overviewCache{}
	s.compares = newComparisons(o)
	s.handler = s.access.wrap(s.routes())
	return s, nil
}

// Log is where the door says what fails: a bounded number of lines.
func (s *Server) Log() io.Writer { return s.log }

// Serve answers the requests that its door hands over until the context ends, and closes the listener. The error is nil
// then.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	streams, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.stream.run(streams)
	return s.serve(streams, &http.Server{Handler: ofDoor(s.handler), WriteTimeout: writeTimeout}, l)
}

// serve answers requests until the context ends, which is theirs, too, and closes the listener.
func (s *site) serve(ctx context.Context, h *http.Server, l net.Listener) error {
	h.MaxHeaderBytes, h.ReadHeaderTimeout, h.ReadTimeout = maxHeaderBytes, headerTimeout, readTimeout
	h.IdleTimeout, h.ErrorLog = idleTimeout, log.New(s.log, "", 0)
	requests, cancel := context.WithCancel(ctx)
	defer cancel()
	h.BaseContext = func(net.Listener) context.Context { return requests }
	l = netutil.LimitListener(l, door.MaxConnections)
	done := make(chan error, 1)
	go func() {
		if h.TLSConfig != nil {
			done <- h.ServeTLS(l, "", "")
		} else {
			done <- h.Serve(l)
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	wait, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	if h.Shutdown(wait) != nil {
		h.Close()
	}
	<-done
	return nil
}

// ofDoor takes the address of who sent a request from the door, by which alone requests come.
func ofDoor(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = r.Header.Get(door.From)
		next.ServeHTTP(w, r)
	})
}

// secret is a random text that nobody guesses.
func secret() string { return rand.Text() + rand.Text() }
