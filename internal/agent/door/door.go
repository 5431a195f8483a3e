// Package door is what others reach of the agent: a process of its own without any capability, which takes connections,
// ends TLS, reads requests, and hands each to the agent as a whole. Files of incidents it opens itself, with no more
// rights than its user has.
package door

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"slowpath/internal/agent/folder"
)

// Headers between the two.
const (
	From = "Slowpath-From" // of a request: the address of who sent it
	File = "Slowpath-File" // of a reply: its body is this file, ID/NAME
)

// Bounds of what is taken from others, and for how long.
const (
	MaxConnections  = 512
	MaxBodyBytes    = 64 << 10
	maxHeaderBytes  = 16 << 10
	headerTimeout   = 5 * time.Second
	readTimeout     = 15 * time.Second
	partTimeout     = 30 * time.Second // of each part of a reply
	idleTimeout     = time.Minute
	reuseTimeout    = idleTimeout / 2 // of connections to the agent, which ends idle ones itself
	shutdownTimeout = 3 * time.Second
)

// Options of a door.
type Options struct {
	TLS *tls.Config // with the certificate; nil: plain HTTP
	// Dial opens a connection to the agent.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Incidents is the directory of the incidents.
	Incidents string
	Log       io.Writer // gets lines about connections that fail
}

// Serve answers requests until the context ends, and closes the listener. The error is nil then.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	inside := &http.Transport{
		DialContext: o.Dial, MaxConnsPerHost: MaxConnections, MaxIdleConnsPerHost: MaxConnections,
		IdleConnTimeout: reuseTimeout, DisableCompression: true,
	}
	defer inside.CloseIdleConnections()
	lines := log.New(o.Log, "", 0)
	requests, cancel := context.WithCancel(ctx)
	defer cancel()
	h := &http.Server{
		Handler: o.handler(inside, lines), MaxHeaderBytes: maxHeaderBytes, ReadHeaderTimeout: headerTimeout,
		ReadTimeout: readTimeout, IdleTimeout: idleTimeout, ErrorLog: lines, TLSConfig: o.TLS,
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	l = netutil.LimitListener(l, MaxConnections)
	done := make(chan error, 1)
	go func() {
		if o.TLS != nil {
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

// handler hands requests to the agent, and replies back.
func (o Options) handler(inside http.RoundTripper, lines *log.Logger) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport: inside, ErrorLog: lines, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "agent"
			r.Out.Header.Set(From, r.In.RemoteAddr)
		},
		ModifyResponse: func(reply *http.Response) error {
			if reply.StatusCode == http.StatusTooManyRequests {
				reply.Header.Set("Connection", "close") // the next guess takes a connection of its own
			}
			return o.openFile(reply)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // who asked has gone
			}
			if errors.Is(err, errNoFile) {
				http.Error(w, err.Error(), http.StatusNotFound)
				return
			}
			lines.Printf("%s: %v", r.URL.Path, err)
			http.Error(w, "the agent does not answer: its log says why", http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			http.Error(w, "CONNECT is not possible here", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, MaxBodyBytes+1)) // the agent refuses what is longer
		if err != nil {
			http.Error(w, "the request did not come to its end", http.StatusRequestTimeout)
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		out := http.NewResponseController(w)
		_ = out.SetReadDeadline(time.Time{}) // it was read; its reply may go on for hours
		proxy.ServeHTTP(&parts{w, out}, r)
	})
}

// parts has each part of a reply written within a time.
type parts struct {
	http.ResponseWriter
	out *http.ResponseController
}

// Write implements http.ResponseWriter.
func (p *parts) Write(b []byte) (int, error) {
	_ = p.out.SetWriteDeadline(time.Now().Add(partTimeout))
	return p.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (p *parts) Unwrap() http.ResponseWriter { return p.ResponseWriter }

var errNoFile = errors.New("it is not there any more")

// openFile puts the file that a reply names in the place of its body.
func (o Options) openFile(reply *http.Response) error {
	named := reply.Header.Get(File)
	if named == "" {
		return nil
	}
	reply.Header.Del(File)
	reply.Body.Close()
	reply.Body = http.NoBody
	id, name, _ := strings.Cut(named, "/")
	file, err := openIn(o.Incidents, id, name)
	if err != nil {
		return errNoFile
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return errNoFile
	}
	reply.ContentLength = info.Size()
	reply.Header.Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	if reply.Request.Method == http.MethodHead {
		return file.Close()
	}
	reply.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(file, info.Size()), file} // it may become longer
	return nil
}

// openIn opens a file of an incident.
func openIn(incidents, id, name string) (*os.File, error) {
	all, err := folder.At(incidents)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	one, err := all.Existing(id)
	if err != nil {
		return nil, err
	}
	defer one.Close()
	return one.Open(name)
}
