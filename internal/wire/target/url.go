package target

import (
	"net/url"
	"strings"
)

// net/url is not used for the whole: it refuses passwords that redis-cli takes, and its errors quote the URL with the
// password in it.

// parseURL reads what follows "scheme://". Its errors quote nothing of it.
func parseURL(scheme, rest string) (address, error) {
	secure, sentinel := sentinelSchemes[scheme]
	unix := false
	switch scheme {
	case "redis", "valkey":
	case "rediss", "valkeys":
		secure = true
	case "unix", "redis+unix", "redis+socket":
		unix = true
	case "rediss+unix":
		secure, unix = true, true
	default:
		if !sentinel {
			return address{}, unknownScheme(scheme)
		}
	}
	userinfo, rest := cutUserinfo(rest)
	fragment := ""
	if sentinel {
		rest, fragment, _ = strings.Cut(rest, "#")
	}
	rest, query, _ := strings.Cut(rest, "?")
	parseRest := parseAuthority
	if unix {
		parseRest = parseSocket
	}
	if sentinel {
		parseRest = func(s string) (address, error) { return parseSentinels(s, fragment) }
	}
	a, err := parseRest(rest)
	if err != nil {
		return address{}, err
	}
	if secure {
		a.TLS = &TLSOptions{}
	}
	if err := a.readQuery(query); err != nil {
		return address{}, err
	}
	return a, a.readUserinfo(userinfo)
}

func unknownScheme(scheme string) error {
	const write = "write redis://, rediss:// (TLS), unix:// or plain HOST:PORT"
	switch scheme {
	case "http", "https":
		return badTarget("a Redis server does not speak " + strings.ToUpper(scheme) + ": " + write)
	}
	return badTarget("the scheme of the URL is not known: " + write)
}

// cutUserinfo splits at the last @; redis-cli takes the first, which would put the tail of a password into the host.
func cutUserinfo(s string) (userinfo, rest string) {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return s[:i], s[i+1:]
	}
	return "", s
}

// parseAuthority reads [host][:port][/db].
func parseAuthority(s string) (address, error) {
	hostport, db, _ := strings.Cut(s, "/")
	a := address{Target: Target{Network: "tcp", Host: DefaultHost, Port: DefaultPort}}
	if hostport != "" {
		if strings.HasPrefix(hostport, "[") {
			hostport = strings.Replace(hostport, "%25", "%", 1) // a zone, as RFC 6874 writes it
		}
		var err error
		if a, err = parseHostPort(hostport); err != nil {
			return address{}, err
		}
	}
	if db = strings.TrimSuffix(db, "/"); db != "" {
		return a, a.setDB(db)
	}
	return a, nil
}

// parseSocket reads the path of unix:///path. A text in the place of the host is a mistake, not a relative path.
func parseSocket(s string) (address, error) {
	path, err := decode(s)
	if err != nil {
		return address{}, err
	}
	if !isPath(path) || strings.ContainsRune(path, 0) {
		return address{}, badTarget("a socket URL has three slashes: write unix:///path/to.sock")
	}
	return address{Target: Target{Network: "unix", Path: path}}, nil
}

// readUserinfo reads [user:]password.
func (a *address) readUserinfo(s string) error {
	user, password, hasUser := strings.Cut(s, ":")
	if !hasUser {
		user, password = "", s
	}
	for _, part := range []struct {
		text string
		to   *string
	}{{user, &a.User}, {password, &a.Password}} {
		text, err := decode(part.text)
		if err != nil {
			return err
		}
		if text != "" {
			*part.to = text
		}
	}
	return nil
}

// readQuery reads the parameters redis-py and go-redis agree on. The userinfo wins over it.
func (a *address) readQuery(query string) error {
	query, _, _ = strings.Cut(query, "#")
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		value, err := decode(value)
		if err != nil {
			return err
		}
		switch key {
		case "db":
			err = a.setDB(value)
		case "protocol":
			err = a.setProtocol(value)
		case "user", "username":
			a.User = value
		case "password":
			a.Password = value
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *address) setDB(s string) (err error) {
	a.hasDB = true
	a.DB, err = parseDB(s)
	return err
}

func (a *address) setProtocol(s string) error {
	switch s {
	case "2", "3":
		a.Protocol = int(s[0] - '0')
		return nil
	}
	return badTarget("the protocol is 2 or 3")
}

// decode undoes percent-encoding; a + stays a +, as in redis-cli.
func decode(s string) (string, error) {
	text, err := url.PathUnescape(s)
	if err != nil { // not wrapped: it quotes the text
		return "", badTarget("a % in the URL is not followed by two hexadecimal digits: write %25 for a % itself")
	}
	return text, nil
}

// escapePath is the inverse of decode for a path: it hides what would end the path or start a userinfo.
func escapePath(path string) string {
	return strings.NewReplacer("%", "%25", "?", "%3F", "@", "%40", "#", "%23").Replace(path)
}
