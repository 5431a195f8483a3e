package incident

import (
	"context"
	"fmt"
	"strings"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// delayProxy puts a proxy before a server that holds every reply for some milliseconds, and returns its address.
// Kernels that lack netem, such as that of many virtual machines, cannot delay packets themselves.
func (l *Lab) delayProxy(addr string, ms int) (string, error) {
	proxy := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "far",
		"127.0.0.1:0", addr)
	if err := proxy.Start(); err != nil {
		return "", fmt.Errorf("starting the delay proxy: %w", err)
	}
	l.Defer(func(context.Context) error { proxy.Stop(); return nil })
	toxic := fmt.Sprintf(`{"name":"far","type":"latency","stream":"downstream","attributes":{"latency":%d}}`, ms)
	if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		return "", fmt.Errorf("setting the delay: %w", err)
	}
	return proxy.Listen, nil
}
