package target

import (
	"strings"
)

// DefaultSentinelPort is that of redis-sentinel.
const DefaultSentinelPort = 26379

// sentinelSchemes are those of client libraries: redis-sentinel of Lettuce, redis+sentinel and sentinel of Python's.
// True: with TLS.
var sentinelSchemes = map[string]bool{
	"sentinel": false, "redis-sentinel": false, "redis+sentinel": false,
	"sentinels": true, "rediss-sentinel": true, "rediss+sentinel": true,
}

// parseSentinels reads host[:port][,host[:port]]…/master[/db], or with the master in the fragment host…[/db]#master.
func parseSentinels(s, fragment string) (address, error) {
	hosts, path, _ := strings.Cut(s, "/")
	name, db := fragment, path
	if fragment == "" {
		name, db, _ = strings.Cut(path, "/")
	}
	name, err := decode(name)
	if err != nil {
		return address{}, err
	}
	if name == "" || strings.ContainsAny(name, " \t\r\n") {
		return address{}, badTarget("a sentinel URL needs the name of the master: write sentinel://HOST:26379/mymaster")
	}
	var first address
	var others []string
	for i, host := range strings.Split(hosts, ",") {
		a := address{Target: Target{Network: "tcp", Host: DefaultHost, Port: DefaultSentinelPort}}
		if host != "" {
			if a, err = parseHostPort(host); err != nil {
				return address{}, err
			}
			if !a.hasPort {
				a.Port = DefaultSentinelPort
			}
		}
		if i == 0 {
			first = a
			continue
		}
		others = append(others, a.Addr())
	}
	first.Sentinel, first.Sentinels = name, strings.Join(others, ",")
	if db = strings.TrimSuffix(db, "/"); db != "" {
		return first, first.setDB(db)
	}
	return first, nil
}

// sentinelURL is the form that Parse reads back.
func (t Target) sentinelURL() string {
	scheme, hosts := "sentinel://", t.Addr()
	if t.TLS != nil {
		scheme = "sentinels://"
	}
	if t.Sentinels != "" {
		hosts += "," + t.Sentinels
	}
	return scheme + hosts + "/" + strings.ReplaceAll(escapePath(t.Sentinel), "/", "%2F")
}
