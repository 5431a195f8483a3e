package source

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/server"
)

const (
	maxNamedHosts = 1024 // of one watch
	maxNameAsked  = 256  // that DNS is asked for
	nameTimeout   = time.Second
)

// hostNames records the names of the hosts that CLIENT LIST has: by /etc/hosts, which asks nobody, and by DNS only
// where that is wanted: its servers learn the addresses.
type hostNames struct {
	fs    hostfs.FS // nil: /etc/hosts is not read
	clock clock.Clock
	sink  recording.Sink
	// lookup asks DNS; nil: it is not asked.
	lookup func(ctx context.Context, address string) ([]string, error)
	ask    chan string

	mu     sync.Mutex
	readNs int64 // when byFile was read
	byFile map[netip.Addr]string
	seen   map[string]bool // hosts as CLIENT LIST has them
}

// newHostNames is nil where no names are looked for.
func newHostNames(o Options, sink recording.Sink) *hostNames {
	if o.NoHost && !o.Resolve {
		return nil
	}
	h := &hostNames{clock: o.Clock, sink: sink, seen: map[string]bool{}, ask: make(chan string, maxNameAsked)}
	if !o.NoHost {
		h.fs = o.FS
	}
	if o.Resolve {
		h.lookup = (&net.Resolver{PreferGo: true}).LookupAddr
	}
	return h
}

// listed looks at a CLIENT LIST; it waits for nobody.
func (h *hostNames) listed(clients []server.Client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range clients {
		host, _, err := net.SplitHostPort(c.Addr)
		if err != nil || c.Self || h.seen[host] || len(h.seen) >= maxNamedHosts {
			continue
		}
		address, err := netip.ParseAddr(host)
		if err != nil || address.IsLoopback() {
			continue
		}
		h.seen[host] = true
		if now := h.clock.Now(); h.fs != nil && (h.byFile == nil || now-h.readNs > int64(time.Minute)) {
			h.byFile, h.readNs = hostfs.HostNames(h.fs), now
		}
		if name := h.byFile[address.Unmap().WithZone("")]; name != "" {
			h.tell(host, name, recording.NamedByHosts)
		} else if h.lookup != nil {
			select {
			case h.ask <- host:
			default: // there are too many
			}
		}
	}
}

func (h *hostNames) tell(host, name, by string) {
	h.sink.Snapshot(recording.Snapshot{
		TimeNs: h.clock.Now(), Source: recording.SourceHost, Subject: recording.HostPrefix + host,
		Name: recording.SnapshotHostName, Body: recording.Detail(recording.HostName{Name: name, By: by}),
	})
}

// run asks DNS, for one host after the other, until ctx ends.
func (h *hostNames) run(ctx context.Context) {
	for range maxNameAsked {
		select {
		case <-ctx.Done():
			return
		case host := <-h.ask:
			limited, cancel := context.WithTimeout(ctx, nameTimeout)
			names, _ := h.lookup(limited, host) // a host without a name is none of a fault
			cancel()
			if name := hostfs.HostName(cmp.Or(append(names, "")...)); name != "" {
				h.tell(host, name, recording.NamedByDNS)
			}
		}
	}
}
