package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"slowpath/internal/lab/servers"
)

var envoy = proxy{
	"envoy", ofCache, "proxy.yaml", envoyConfig,
	func(_ Info, conf string, _ []string) []string {
		return []string{"-c", conf, "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"}
	},
}

// StartEnvoy starts an Envoy that spreads keys over servers, by a hash as Envoy has it (Maglev). It has one worker
// thread. The error is ErrNoProxy if it is not in the cache and cannot be downloaded.
func (f *Fleet) StartEnvoy(ctx context.Context, backends ...*Instance) (*Instance, error) {
	return f.startProxy(ctx, envoy, Spec{}, backends)
}

// ofCache downloads Envoy first if the cache has none.
func ofCache(ctx context.Context, _ proxy) (path, open string, err error) {
	cache, err := servers.OpenCache("")
	if err != nil {
		return "", "", err
	}
	bin, err := cache.Envoy(ctx, nil)
	if errors.Is(err, servers.ErrRegistry) || errors.Is(err, servers.ErrTool) {
		return "", "", fmt.Errorf("%w: %w", ErrNoProxy, err)
	}
	return bin.Path, bin.Dir, err
}

// envoyConfig has no port for administration. A call may take as long as through the other proxies of the lab.
func envoyConfig(i Info, backends []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `static_resources:
  listeners:
  - address: %s
    filter_chains:
    - filters:
      - name: envoy.filters.network.redis_proxy
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy
          stat_prefix: lab
          settings: {op_timeout: 3600s}
          prefix_routes: {catch_all_route: {cluster: lab}}
  clusters:
  - name: lab
    type: STATIC
    connect_timeout: 2s
    lb_policy: MAGLEV
    load_assignment:
      cluster_name: lab
      endpoints:
      - lb_endpoints:
`, envoyAddress(i.Addr))
	for _, addr := range backends {
		fmt.Fprintf(&b, "        - endpoint: {address: %s}\n", envoyAddress(addr))
	}
	return b.String()
}

func envoyAddress(addr string) string {
	host, port, _ := net.SplitHostPort(addr) // of an Info: always both
	n, _ := strconv.Atoi(port)
	return fmt.Sprintf("{socket_address: {address: %q, port_value: %d}}", host, n)
}
