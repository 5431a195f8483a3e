package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tcp := func(host string, port int) Target { return Target{Network: "tcp", Host: host, Port: port} }
	login := func(t Target, user, password string, db int) Target {
		t.User, t.Password, t.DB = user, password, db
		return t
	}
	sentinel := func(host string, port int, name, others string) Target {
		t := tcp(host, port)
		t.Sentinel, t.Sentinels = name, others
		return t
	}
	local := tcp("127.0.0.1", 6379)
	for text, want := range map[string]Target{
		"localhost:7000":              tcp("localhost", 7000),
		"localhost":                   tcp("localhost", 6379),
		":7000":                       tcp("127.0.0.1", 7000),
		"10.0.0.1":                    tcp("10.0.0.1", 6379),
		"[::1]:7000":                  tcp("::1", 7000),
		"[::1]":                       tcp("::1", 6379),
		"::1":                         tcp("::1", 6379),
		"fe80::1%eth0":                tcp("fe80::1%eth0", 6379),
		"my_host-1.svc.local.:1":      tcp("my_host-1.svc.local.", 1),
		"/run/redis.sock":             {Network: "unix", Path: "/run/redis.sock"},
		"./a b.sock":                  {Network: "unix", Path: "./a b.sock"},
		"redis://":                    local,
		"REDIS://h":                   tcp("h", 6379),
		"valkey://h:7/":               tcp("h", 7),
		"redis:///3":                  login(local, "", "", 3),
		"redis://h/3/":                login(tcp("h", 6379), "", "", 3),
		"redis://h?db=4&timeout=5s":   login(tcp("h", 6379), "", "", 4),
		"redis://:pw@h:7000/2":        login(tcp("h", 7000), "", "pw", 2),
		"redis://pw@h":                login(tcp("h", 6379), "", "pw", 0),
		"redis://bob:pw@h":            login(tcp("h", 6379), "bob", "pw", 0),
		"redis://bob:@h":              login(tcp("h", 6379), "bob", "", 0),
		"redis://b%40b:p%3Aw%2F+@h":   login(tcp("h", 6379), "b@b", "p:w/+", 0),
		"redis://:p@s/s?w#@h:1":       login(tcp("h", 1), "", "p@s/s?w#", 0),
		"redis://:pw@[::1]:7000":      login(tcp("::1", 7000), "", "pw", 0),
		"redis://[fe80::1%25eth0]":    tcp("fe80::1%eth0", 6379),
		"redis://h?user=u&password=p": login(tcp("h", 6379), "u", "p", 0),
		"redis://h?protocol=3":        {Network: "tcp", Host: "h", Port: 6379, Protocol: 3},
		"rediss://h":                  {Network: "tcp", Host: "h", Port: 6379, TLS: &TLSOptions{}},
		"unix:///run/r.sock?db=5":     {Network: "unix", Path: "/run/r.sock", DB: 5},
		"redis+unix://:pw@/r%3F.sock": {Network: "unix", Path: "/r?.sock", Password: "pw"},

		"sentinel://h/mymaster":             sentinel("h", 26379, "mymaster", ""),
		"sentinel://h:1,g,[::1]:2/mymaster": sentinel("h", 1, "mymaster", "g:26379,[::1]:2"),
		"redis+sentinel://:pw@h/m/2":        login(sentinel("h", 26379, "m", ""), "", "pw", 2),
		"redis-sentinel://pw@h:1,g:2/3#m":   login(sentinel("h", 1, "m", "g:2"), "", "pw", 3),
		"sentinel:///m%2F1?db=4":            login(sentinel("127.0.0.1", 26379, "m/1", ""), "", "", 4),
		"rediss-sentinel://bob:p%2Fw@h/m?protocol=3": func() Target {
			x := login(sentinel("h", 26379, "m", ""), "bob", "p/w", 0)
			x.Protocol = 3
			x.TLS = &TLSOptions{}
			return x
		}(),
	} {
		got, err := Parse(text)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			continue
		}
		if (got.TLS == nil) != (want.TLS == nil) {
			t.Errorf("Parse(%q).TLS = %v", text, got.TLS)
		}
		got.TLS, want.TLS = nil, nil
		if got != want {
			t.Errorf("Parse(%q) = %s, want %s", text, fields(got), fields(want))
		}
	}
}

// fields shows everything, the password too: the methods of Target would not.
func fields(t Target) string {
	return fmt.Sprintf("%s host=%s port=%d path=%s user=%s password=%s db=%d protocol=%d sentinel=%s sentinels=%s",
		t.Network, t.Host, t.Port, t.Path, t.User, t.Password, t.DB, t.Protocol, t.Sentinel, t.Sentinels)
}

func TestParseRefuses(t *testing.T) {
	for text, say := range map[string]string{
		"":                          "empty",
		"h:":                        "1 to 65535",
		"h:0":                       "1 to 65535",
		"h:65536":                   "1 to 65535",
		"h:+1":                      "1 to 65535",
		"h:99999999999999999999":    "1 to 65535",
		"6379":                      ":PORT",
		"a:b:c":                     "more than one colon",
		"::1:zz":                    "more than one colon",
		"[::1":                      "brackets",
		"[localhost]:1":             "brackets",
		"[::1]7000":                 ":PORT",
		"h/0":                       "redis://",
		"a b:1":                     "character",
		"a\x00b":                    "character",
		"http://h:6379":             "does not speak HTTP",
		"https://h":                 "does not speak HTTPS",
		"ftp://h":                   "scheme",
		":S3CRET@h:6379":            "@ without a scheme",
		"nope://:S3CRET@h":          "scheme",
		"redis://:S3CRET":           "1 to 65535", // the @HOST forgotten
		"redis://:S3CRET%zz@h":      "hexadecimal",
		"redis://:S3CRET@h:x":       "1 to 65535",
		"redis://:S3CRET@h/x":       "database",
		"redis://:S3CRET@h/-1":      "database",
		"redis://h/2147483648":      "database",
		"redis://h?db=":             "database",
		"redis://h?protocol=4":      "2 or 3",
		"redis://h?password=S3%":    "hexadecimal",
		"h?password=S3CRET":         "character",
		"unix://run/r.sock":         "three slashes",
		"unix://":                   "three slashes",
		"unix://:S3CRET@/r%zz.sock": "hexadecimal",
		"sentinel://:S3CRET@h":      "sentinel://HOST:26379/mymaster",
		"sentinel://h/":             "sentinel://HOST:26379/mymaster",
		"sentinel://:S3CRET@h/m/x":  "database",
		"sentinel://h,:x/m":         "1 to 65535",
	} {
		got, err := Parse(text)
		if !errors.Is(err, ErrBadTarget) || !strings.Contains(err.Error(), say) {
			t.Errorf("Parse(%q) = %v, %v; want an ErrBadTarget with %q", text, got, err, say)
		} else if strings.Contains(err.Error(), "S3") {
			t.Errorf("Parse(%q): the error holds the password: %v", text, err)
		}
	}
}

func TestDisplay(t *testing.T) {
	for text, want := range map[string]string{
		"redis://u:S3CRET@h:1/2":          "h:1",
		"rediss://u:S3CRET@[::1]:1":       "rediss://[::1]:1",
		"unix://:S3CRET@/r.sock":          "/r.sock",
		"rediss+unix://:S3CRET@/r%3F%25x": "rediss+unix:///r%3F%25x",
		"sentinels://:S3CRET@h,g:1/a%2Fb": "sentinels://h:26379,g:1/a%2Fb",
	} {
		target, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := target.String(); got != want {
			t.Errorf("String of %s = %s, want %s", text, got, want)
		}
		if leak := leaks(target, "S3CRET"); leak != "" {
			t.Errorf("the password shows: %s", leak)
		}
	}
	if got := fmt.Sprintf("%8s|%q|%#v", Target{Network: "unix", Path: "/r"}, Target{Network: "unix", Path: "/r"},
		Target{Network: "unix", Path: "/r"}); got != `      /r|"/r"|target.Target("/r")` {
		t.Error(got)
	}
}

// leaks prints v in every way there is and returns one that holds the secret.
func leaks(v any, secret string) string {
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "target", v)
	printed := []string{log.String()}
	// not %p: fmt asks no method, and vet refuses it
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%t", "%T"} {
		printed = append(printed, fmt.Sprintf(verb, v), fmt.Sprintf(verb, []any{v}))
	}
	if _, ok := v.(Target); ok {
		text, _ := json.Marshal(v)
		printed = append(printed, string(text))
	}
	for _, text := range printed {
		if strings.Contains(text, secret) || strings.Contains(text, fmt.Sprintf("%x", secret)) {
			return text
		}
	}
	return ""
}

func TestWithAddr(t *testing.T) {
	seed, err := Parse("rediss://u:pw@seed:7000/1")
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]string{
		"10.0.0.2:7001": "rediss://10.0.0.2:7001",
		"::1:7001":      "rediss://[::1]:7001", // as MOVED prints it
		"[::1]:7001":    "rediss://[::1]:7001",
		":7001":         "rediss://seed:7001",
		"nonsense":      "rediss://nonsense:0",
	} {
		node := seed.WithAddr(addr)
		if node.String() != want || node.User != "u" || node.Password != "pw" || node.DB != 1 || node.TLS != seed.TLS {
			t.Errorf("WithAddr(%q) = %v with %s", addr, node, fields(node))
		}
	}
	socket := Target{Network: "unix", Path: "/r.sock", Password: "pw"}
	if node := socket.WithAddr("h:1"); node.Network != "tcp" || node.Path != "" || node.Addr() != "h:1" {
		t.Errorf("from a socket: %s", fields(node))
	}
}

// FuzzParse: Parse never panics, what it accepts is valid and is read back from String, and a password stays inside.
func FuzzParse(f *testing.F) {
	f.Add("redis://", "user", "p@/?%20", "h:6379/2?db=1")
	f.Add("unix://", "", "", "/run/r.sock?db=1")
	f.Add("", "", "", "[::1]:7000")
	f.Add("rediss://", "a:b", "#", "h%zz:-1")
	f.Add("nope://", "", ":", "")
	f.Fuzz(func(t *testing.T, scheme, user, password, rest string) {
		const secret = "S3CRET"
		if strings.Contains(scheme+user+rest, secret) {
			t.Skip()
		}
		checkParsed(t, scheme+rest)
		_, err := Parse(rest)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("an error of more than one line: %q", err)
		}
		if !strings.Contains(scheme, "://") {
			scheme += "://" // elsewhere a "?password=" is part of a path
		}
		texts := []string{
			scheme + user + ":" + secret + password + "@" + rest,
			scheme + rest + "?password=" + secret,
		}
		if !strings.Contains(rest, "@") { // else it is the name of the user
			texts = append(texts, scheme+password+secret+"@"+rest)
		}
		for _, text := range texts {
			target, err := Parse(text)
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("Parse(%q): %v", text, err)
			}
			if strings.Contains(target.Addr(), secret) || leaks(target, secret) != "" {
				t.Errorf("Parse(%q) = %s shows the password", text, fields(target))
			}
		}
	})
}

func checkParsed(t *testing.T, text string) {
	target, err := Parse(text)
	if err != nil {
		if !errors.Is(err, ErrBadTarget) {
			t.Errorf("Parse(%q): %v is no ErrBadTarget", text, err)
		}
		return
	}
	if err := target.check(); err != nil {
		t.Errorf("Parse(%q) cannot be dialed: %v", text, err)
	}
	back, err := Parse(target.String())
	if err != nil || back.Addr() != target.Addr() || (back.TLS == nil) != (target.TLS == nil) {
		t.Errorf("Parse(%q) = %v, read back as %v, %v", text, target, back, err)
	}
}
