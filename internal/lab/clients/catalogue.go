// Package clients builds and runs the lab's client programs: real client libraries, each in a process of its own. A
// load in the lab's own process (package traffic) has no pool, no garbage collector and no CPU of its own.
//
// The programs are sources (slowpath/internal/lab/clients/programs) that are built on first use, with pinned versions.
// docs/clients.md has their protocol.
package clients

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"slowpath/internal/lab/clients/programs/protocol"
)

// Name is the name of a client program. A name with a slash is the path of a program of the user.
type Name string

// The client programs.
const (
	GoRedis6  Name = "go-redis-v6"
	GoRedis8  Name = "go-redis-v8"
	GoRedis9  Name = "go-redis-v9"
	Redigo    Name = "redigo"
	Rueidis   Name = "rueidis"
	Jedis     Name = "jedis"
	Lettuce6  Name = "lettuce-6"
	Lettuce7  Name = "lettuce-7"
	RedisPy   Name = "redis-py"
	NodeRedis Name = "node-redis"
	IORedis   Name = "ioredis"
	PyAsync   Name = "pyasync"
	Hiredis   Name = "hiredis"
	RedisRS   Name = "redis-rs"

	SpringCache Name = "spring-cache"
)

// Types of the protocol that users of this package need.
type (
	Options = protocol.Options
	Command = protocol.Command
	Summary = protocol.Summary
)

// Client is one entry of the catalogue, and of the list of slowpath.clients/v1.
type Client struct {
	Name     Name            `json:"name"`
	Library  string          `json:"library"` // as its project calls it
	Version  string          `json:"version"` // that is built; or where it comes from, if it is not pinned
	Language string          `json:"language"`
	Modes    []protocol.Mode `json:"modes"`
	HTTP     bool            `json:"http"` // has the HTTP service
	Pprof    bool            `json:"-"`    // the HTTP service has profiles under /debug/pprof/
	Pool     bool            `json:"-"`    // calls borrow connections of a pool, of which pool_size is the size
	Own      bool            `json:"-"`    // knows own_connections

	recipe recipe
}

// Has reports whether the library has a mode.
func (c Client) Has(m protocol.Mode) bool { return m == "" || slices.Contains(c.Modes, m) }

var (
	standalone = []protocol.Mode{protocol.Standalone}
	clustered  = []protocol.Mode{protocol.Standalone, protocol.Cluster}
	ringed     = []protocol.Mode{protocol.Standalone, protocol.Cluster, protocol.Ring}
)

// ofDebian is the version of a library that is a package of the host.
const ofDebian = "of Debian's package"

// catalogue is in the order in which clients are listed. The versions are those of the module and lock files of the
// sources; a test checks that.
var catalogue = []Client{
	{
		Name: GoRedis6, Library: "go-redis", Version: "6.15.9", Language: "Go", Modes: ringed, HTTP: true, Pprof: true,
		Pool:   true,
		recipe: goModule,
	},
	{
		Name: GoRedis8, Library: "go-redis", Version: "8.11.5", Language: "Go", Modes: ringed, HTTP: true, Pprof: true,
		Pool: true, Own: true,
		recipe: goModule,
	},
	{
		Name: GoRedis9, Library: "go-redis", Version: "9.23.0", Language: "Go", Modes: ringed, HTTP: true, Pprof: true,
		Pool: true, Own: true,
		recipe: goModule,
	},
	{
		Name: Redigo, Library: "redigo", Version: "1.9.3", Language: "Go", Modes: standalone, HTTP: true, Pprof: true,
		Pool: true, Own: true,
		recipe: goModule,
	},
	{
		Name: Rueidis, Library: "rueidis", Version: "1.0.79", Language: "Go", Modes: clustered, HTTP: true, Pprof: true,
		recipe: goModule,
	},
	{
		Name: Jedis, Library: "jedis", Version: "7.5.3", Language: "Java", Modes: clustered, HTTP: true,
		Pool: true, Own: true,
		recipe: mavenProject,
	},
	{
		Name: Lettuce6, Library: "lettuce", Version: "6.8.1", Language: "Java", Modes: clustered, HTTP: true,
		recipe: mavenProject,
	},
	{
		Name: Lettuce7, Library: "lettuce", Version: "7.7.0", Language: "Java", Modes: clustered, HTTP: true,
		recipe: mavenProject,
	},
	{
		Name: RedisPy, Library: "redis-py", Version: "8.1.0", Language: "Python", Modes: clustered, HTTP: true,
		Pool: true, Own: true,
		recipe: pipPackage,
	},
	{
		Name: NodeRedis, Library: "node-redis", Version: "6.3.1", Language: "JavaScript", Modes: clustered, HTTP: true,
		Pool:   true,
		recipe: nodePackage,
	},
	{
		Name: IORedis, Library: "ioredis", Version: "6.0.0", Language: "JavaScript", Modes: clustered, HTTP: true,
		recipe: nodePackage,
	},
	{
		Name: SpringCache, Library: "spring-data-redis", Version: "3.5.5", Language: "Java", Modes: standalone,
		HTTP:   true,
		recipe: mavenProject,
	},
	{
		Name: PyAsync, Library: "redis.asyncio", Version: ofDebian, Language: "Python", Modes: standalone,
		recipe: debianPython,
	},
	{
		Name: Hiredis, Library: "hiredis", Version: ofDebian, Language: "C", Modes: standalone,
		recipe: hiredisC,
	},
	{
		Name: RedisRS, Library: "redis-rs", Version: "0.32.7", Language: "Rust", Modes: standalone,
		recipe: cargoCrate,
	},
}

// Catalogue lists the clients.
func Catalogue() []Client { return slices.Clone(catalogue) }

// Known lists the names of the clients.
func Known() []Name {
	names := make([]Name, len(catalogue))
	for i, c := range catalogue {
		names[i] = c.Name
	}
	return names
}

// Lookup returns the client with a name. The error lists the known names.
func Lookup(name Name) (Client, error) {
	for _, c := range catalogue {
		if c.Name == name {
			return c, nil
		}
	}
	return Client{}, fmt.Errorf("unknown client %q; known: %s; or the path of a program of your own, with a slash in "+
		"it", name, strings.Trim(fmt.Sprint(Known()), "[]"))
}

// CheckName finds a name that nobody knows, and a path of what is no program.
func CheckName(name Name) error {
	if !strings.Contains(string(name), "/") {
		_, err := Lookup(name)
		return err
	}
	info, err := os.Stat(string(name))
	if err == nil && (info.IsDir() || info.Mode().Perm()&0o111 == 0) {
		err = errors.New("it cannot be executed")
	}
	if err != nil {
		return fmt.Errorf("the client %s: %w", name, err)
	}
	return nil
}
