// Package target names a Redis or Valkey server the way redis-cli does (address, credentials, TLS) and opens the byte
// stream to it, timing each phase of the dial. The stream keeps the kernel's arrival time of what it read.
//
// It ends with the connected stream, after the TLS handshake if there is one: HELLO, AUTH and SELECT are sent by the
// packages that use it.
package target

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
)

// Defaults of redis-cli, used where an address leaves a part out.
const (
	DefaultHost = "127.0.0.1"
	DefaultPort = 6379 // of redis:// and of rediss:// alike
)

// Target is one server, proxy or load balancer, with how to connect and log in.
type Target struct {
	Network string // "tcp" or "unix"
	Host    string // a name or an IP without brackets; tcp only
	Port    int    // 1…65535; tcp only
	Path    string // of the socket; unix only

	// Sentinel is the name of a master if Host and Port are those of a sentinel that knows its address; Sentinels are
	// further ones, HOST:PORT separated by commas. Dial refuses such a target.
	Sentinel, Sentinels string

	User     string // "" is the default user
	Password string `json:"-"` // no method of this package ever prints it
	DB       int

	TLS      *TLSOptions // nil is plain text. Shared between copies of a Target: never written after parsing
	Protocol int         // 0 is the server's default (RESP2), else 2 or 3
}

// TLSOptions are the TLS flags of redis-cli. Unlike redis-cli, which checks only the chain, the name in the
// certificate is checked too, against SNI or else the host; Insecure turns both checks off.
type TLSOptions struct {
	SNI       string // server name to ask for and to expect; "" is the host
	CACert    string // PEM file of trusted roots; with it (or CACertDir) the system's roots are not used
	CACertDir string // directory of such files
	Cert, Key string // PEM files of the client certificate, both or none
	Insecure  bool
}

// Addr is host:port (an IPv6 host in brackets) or the socket's path, for display and for maps: it holds no secret.
func (t Target) Addr() string {
	if t.Network == "unix" {
		return t.Path
	}
	return net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
}

// Grant is the command by which an operator gives this target's user rights: rules as of ACL SETUSER.
func (t Target) Grant(rules string) string {
	return "ACL SETUSER " + cmp.Or(t.User, "default") + " " + rules
}

// String is Addr, with a scheme in front if TLS is used. Parse reads it back; credentials and database are left out.
func (t Target) String() string {
	switch {
	case t.Sentinel != "":
		return t.sentinelURL()
	case t.TLS == nil:
		return t.Addr()
	case t.Network == "unix":
		return "rediss+unix://" + escapePath(t.Path)
	}
	return "rediss://" + t.Addr()
}

// GoString keeps the password out of %#v.
func (t Target) GoString() string { return "target.Target(" + strconv.Quote(t.String()) + ")" }

// Format prints String for every verb: without it %d and the like would print the fields, the password among them.
// (Only %p asks no method, and go vet refuses that one.)
func (t Target) Format(s fmt.State, verb rune) { redacted(s, verb, t.String(), t.GoString()) }

// LogValue keeps the password out of structured logs.
func (t Target) LogValue() slog.Value { return slog.StringValue(t.String()) }

func redacted(s fmt.State, verb rune, plain, goSyntax string) {
	switch {
	case verb == 'v' && s.Flag('#'):
		io.WriteString(s, goSyntax)
	case verb == 's' || verb == 'q':
		fmt.Fprintf(s, fmt.FormatString(s, verb), plain)
	default:
		io.WriteString(s, plain)
	}
}

// WithAddr is another node of the same deployment: same credentials and TLS, other address. It takes addresses as
// clusters write them: split at the last colon, since MOVED and CLUSTER NODES print IPv6 without brackets
// (src/cluster.c, clusterRedirectClient), and with an empty host meaning "the node you asked" (Redis 7,
// cluster-preferred-endpoint-type unknown-endpoint). Without a usable port, Port is 0 and Dial says so.
func (t Target) WithAddr(hostport string) Target {
	host, port := hostport, ""
	if i := strings.LastIndexByte(hostport, ':'); i >= 0 {
		host, port = hostport[:i], hostport[i+1:]
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if host == "" {
		host = t.Host
	}
	t.Network, t.Host, t.Path, t.Sentinel, t.Sentinels = "tcp", host, "", "", ""
	t.Port, _ = parsePort(port)
	return t
}
