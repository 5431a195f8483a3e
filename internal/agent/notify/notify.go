// Package notify tells others of incidents, by webhooks: Slack, Alertmanager, or any server that takes JSON. What is
// sent is bounded, and sending holds up nobody.
package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options of New.
type Options struct {
	Receivers []Receiver
	// Log receives one line about each thing that went wrong, without secrets; nil: nobody.
	Log func(string)
	// RootCAs are those that receivers are checked by; nil: the system's.
	RootCAs *x509.CertPool
	// Dial connects to receivers; nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// PerHour is how many messages a receiver gets at most; 0: DefaultPerHour.
	PerHour int
	// FirstWait is the wait before the second try of a message, doubled with each; 0: a second.
	FirstWait time.Duration
}

// Bounds of what is sent.
const (
	DefaultPerHour = 60
	burst          = 10 // messages one after the other
	maxQueue       = 32 // messages that wait for a receiver
	maxTries       = 8  // over about four minutes
	maxWait        = 2 * time.Minute
	timeout        = 10 * time.Second // of one try
	lastTry        = 2 * time.Second  // at the end
	maxIncidents   = 256              // whose last message is known
)

// Notifier sends messages to receivers.
type Notifier struct {
	o     Options
	lanes []*lane
}

// Stats are numbers since the start.
type Stats struct {
	Sent, Failed, Dropped, Bytes, Queued int64
	LastSuccess, LastError               time.Time
	Error                                string // the last one
}

// New makes a notifier; Run sends.
func New(o Options) *Notifier {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.PerHour <= 0 {
		o.PerHour = DefaultPerHour
	}
	if o.FirstWait <= 0 {
		o.FirstWait = time.Second
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: timeout}).DialContext
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1,
		IdleConnTimeout: time.Minute, TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout,
		MaxResponseHeaderBytes: 64 << 10,
		DialContext:            o.Dial,
		TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
	}
	n := &Notifier{o: o}
	for _, r := range o.Receivers {
		n.lanes = append(n.lanes, &lane{
			Receiver: r, log: o.Log, wait: o.FirstWait, queue: make(chan Message, maxQueue), last: map[string]Message{},
			waiting: map[string]int{},
			tokens:  burst, filled: time.Now(), perHour: float64(o.PerHour),
			client: &http.Client{
				Transport: transport, Timeout: timeout,
				// What is sent is for the receiver that was named.
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			},
		})
	}
	return n
}

// Send queues a message for all receivers, and never waits. What says nothing new of its incident is left out, and so
// is an incident in which nothing was wrong, unless another verdict was sent before.
func (n *Notifier) Send(m Message) {
	for _, l := range n.lanes {
		l.put(m)
	}
}

// Stats are the numbers of all receivers together.
func (n *Notifier) Stats() (all Stats) {
	for _, l := range n.lanes {
		l.mu.Lock()
		s := l.stats
		l.mu.Unlock()
		all.Sent += s.Sent
		all.Failed += s.Failed
		all.Dropped += s.Dropped
		all.Bytes += s.Bytes
		all.Queued += int64(len(l.queue))
		if s.LastSuccess.After(all.LastSuccess) {
			all.LastSuccess = s.LastSuccess
		}
		if s.LastError.After(all.LastError) {
			all.LastError, all.Error = s.LastError, s.Error
		}
	}
	return all
}

// Run sends until the context ends. What waits then gets one more try, for two seconds in all.
func (n *Notifier) Run(ctx context.Context) {
	var lanes sync.WaitGroup
	for _, l := range n.lanes {
		lanes.Go(func() { l.run(ctx) })
	}
	lanes.Wait()
}
