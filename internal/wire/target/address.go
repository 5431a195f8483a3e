package target

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
)

// address is a Target and what its text left to the defaults: flags may fill in those parts and no others.
type address struct {
	Target
	hasHost, hasPort, hasDB bool
}

// Parse reads one target: HOST:PORT, HOST, :PORT, [v6]:PORT, a bare v6, redis:// rediss:// valkey:// valkeys:// URLs
// ([user:]password@host:port/db, percent-encoded), unix:///path?db=N, redis+unix://, or a path to a socket.
//
// As in redis-cli (src/cli_common.c, parseRedisUri) a lone word before the @ is the password, not the user. The
// userinfo ends at the last @, so that an unencoded @ or / in a password cannot spill into the host. Of the query, db,
// protocol, user (or username) and password are read and the rest is left alone: URLs are pasted from applications,
// whose client libraries have their own.
//
// Errors match ErrBadTarget. They quote no text that may contain a password.
func Parse(s string) (Target, error) {
	a, err := parse(s)
	if err != nil {
		return Target{}, err
	}
	return a.Target, nil
}

func parse(s string) (address, error) {
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		return parseURL(strings.ToLower(scheme), rest)
	}
	if strings.Contains(s, "@") {
		// Not quoted: it looks like a URL whose scheme was forgotten, so it probably holds a password.
		return address{}, badTarget("an @ without a scheme: write redis://USER:PASSWORD@HOST:PORT")
	}
	if isPath(s) {
		return address{Target: Target{Network: "unix", Path: s}}, nil
	}
	a, err := parseHostPort(s)
	if err != nil && !strings.ContainsAny(s, "?=") { // a piece of a URL, perhaps "?password=…"
		err = fmt.Errorf("%w (in %q)", err, s)
	}
	return a, err
}

// isPath recognizes the path of a socket: it begins with /, ./ or ../.
func isPath(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../")
}

// parseHostPort reads HOST, HOST:PORT, :PORT, [v6], [v6]:PORT or a bare v6, filling in the defaults. It never quotes
// its input: in a URL that lacks its @ the "port" is a password.
func parseHostPort(s string) (address, error) {
	if s == "" {
		return address{}, badTarget("the target is empty: write HOST:PORT")
	}
	host, port, hasPort, err := splitHostPort(s)
	if err != nil {
		return address{}, err
	}
	a := address{
		Target: Target{Network: "tcp", Host: DefaultHost, Port: DefaultPort}, hasHost: host != "",
		hasPort: hasPort,
	}
	if a.hasHost {
		if err := checkHost(host); err != nil {
			return address{}, err
		}
		a.Host = host
	}
	if hasPort {
		if a.Port, err = parsePort(port); err != nil {
			return address{}, err
		}
	}
	return a, nil
}

func splitHostPort(s string) (host, port string, hasPort bool, err error) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		host, rest, closed := strings.Cut(inner, "]")
		ip, err := netip.ParseAddr(host)
		if !closed || err != nil || !ip.Is6() {
			return "", "", false, badTarget("brackets hold an IPv6 address: write [::1]:6379")
		}
		if rest == "" {
			return host, "", false, nil
		}
		port, ok := strings.CutPrefix(rest, ":")
		if !ok {
			return "", "", false, badTarget("only :PORT may follow the brackets: write [::1]:6379")
		}
		return host, port, true, nil
	}
	if strings.Count(s, ":") > 1 {
		if _, err := netip.ParseAddr(s); err != nil {
			return "", "", false, badTarget("more than one colon, and not an IPv6 address: write HOST:PORT or " +
				"[v6]:PORT")
		}
		return s, "", false, nil
	}
	host, port, hasPort = strings.Cut(s, ":")
	return host, port, hasPort, nil
}

// checkHost refuses what no resolver could mean; whether the name exists is for Dial to find out.
func checkHost(host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	if _, err := strconv.ParseUint(host, 10, 64); err == nil {
		return badTarget("a lone number is no host: for a port write :PORT, or -p PORT")
	}
	if strings.ContainsRune(host, '/') {
		return badTarget("a host has no slash: for a database write redis://HOST:PORT/DB, for a socket ./PATH or /PATH")
	}
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`@?#[]:%\"'<>,;`, r)
	}
	if i := strings.IndexFunc(host, bad); i >= 0 {
		return badTarget("the host holds a character that host names do not have")
	}
	return nil
}

func parsePort(s string) (int, error) {
	n, err := parseDigits(s)
	if err != nil || n < 1 || n > math.MaxUint16 {
		return 0, badTarget("the port is a number from 1 to 65535")
	}
	return n, nil
}

// parseDB limits a database number as SELECT does, to an int of 32 bits; how many there are, the server knows.
func parseDB(s string) (int, error) {
	n, err := parseDigits(s)
	if err != nil {
		return 0, badTarget("the database is a number from 0 to 2147483647")
	}
	return n, nil
}

// parseDigits reads a number without sign, unlike strconv.Atoi.
func parseDigits(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err
}
