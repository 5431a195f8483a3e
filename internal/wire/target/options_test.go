package target

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func env(name string) string {
	if name == "REDISCLI_AUTH" {
		return "from-env"
	}
	return ""
}

func TestTargets(t *testing.T) {
	ask := func() (string, error) { return "asked", nil }
	show := func(t Target) string {
		return fmt.Sprintf("%v %s:%s/%d v%d", t, t.User, t.Password, t.DB, t.Protocol)
	}
	for name, test := range map[string]struct {
		o    Options
		args string
		want string
	}{
		"nothing":       {Options{}, "", "127.0.0.1:6379 :from-env/0 v0"},
		"host and port": {Options{Host: "h", Port: 1, DB: 2}, "", "h:1 :from-env/2 v0"},
		"v6 host":       {Options{Host: "::1"}, "", "[::1]:6379 :from-env/0 v0"},
		"-a wins over env": {
			Options{Password: "flag", User: "bob", RESP3: true},
			"",
			"127.0.0.1:6379 bob:flag/0 v3",
		},
		"askpass wins over -a": {
			Options{Password: "flag", AskPass: true, ReadPassword: ask},
			"",
			"127.0.0.1:6379 :asked/0 v0",
		},
		"url wins": {
			Options{Password: "flag", User: "bob", DB: 1, RESP2: true},
			"redis://eve:own@h/0?protocol=3", "h:6379 eve:own/0 v3",
		},
		"url fills up": {
			Options{Password: "flag", DB: 1, RESP2: true},
			"redis://eve:@h",
			"h:6379 eve:flag/1 v2",
		},
		"socket":         {Options{Socket: "r.sock"}, "", "r.sock :from-env/0 v0"},
		"-u":             {Options{URI: "rediss://:own@h:1/2", DB: 9}, "", "rediss://h:1 :own/2 v0"},
		"-u and a hop":   {Options{URI: "redis://:own@lb"}, "server", "lb:6379 :own/0 v0, server:6379 :from-env/0 v0"},
		"port for hosts": {Options{Port: 7000}, "a b:1", "a:7000 :from-env/0 v0, b:1 :from-env/0 v0"},
		"host for ports": {Options{Host: "h"}, ":1 :2", "h:1 :from-env/0 v0, h:2 :from-env/0 v0"},
		"tls for all": {
			Options{TLS: true, Insecure: true},
			"a redis://b",
			"rediss://a:6379 :from-env/0 v0, rediss://b:6379 :from-env/0 v0",
		},
		"no prompt for nothing": {Options{AskPass: true, ReadPassword: nil, Password: "x"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			targets, err := test.o.Targets(strings.Fields(test.args), env)
			if test.want == "" {
				if !errors.Is(err, ErrBadTarget) {
					t.Fatalf("%v, %v", targets, err)
				}
				return
			}
			var got []string
			for _, target := range targets {
				got = append(got, show(target))
			}
			if err != nil || strings.Join(got, ", ") != test.want {
				t.Errorf("got %s, %v\nwant %s", strings.Join(got, ", "), err, test.want)
			}
		})
	}
}

func TestTargetsTLSDetails(t *testing.T) {
	o := Options{SNI: "n", CACert: "ca", CACertDir: "d", Cert: "c", Key: "k", Insecure: true}
	targets, err := o.Targets([]string{"plain", "rediss://secure"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := TLSOptions{SNI: "n", CACert: "ca", CACertDir: "d", Cert: "c", Key: "k", Insecure: true}
	if targets[0].TLS != nil || targets[1].TLS == nil || *targets[1].TLS != want {
		t.Errorf("%v %v", targets[0].TLS, targets[1].TLS)
	}
}

func TestTargetsRefuses(t *testing.T) {
	failing := func() (string, error) { return "", errors.New("no terminal") }
	for say, test := range map[string]struct {
		o    Options
		args string
	}{
		"-p is a port":          {o: Options{Port: 65536}},
		"-n is a database":      {o: Options{DB: -1}},
		"-2 and -3":             {o: Options{RESP2: true, RESP3: true}},
		"go together":           {o: Options{TLS: true, Cert: "c"}},
		"-u takes a URL":        {o: Options{URI: "S3CRET@h"}},
		"-u: bad target":        {o: Options{URI: "redis://:S3CRET@h:x"}},
		"target 2":              {args: "h redis://:S3CRET@h:x"},
		"-h has no effect":      {o: Options{Host: "h"}, args: "a:1"},
		"-p has no effect":      {o: Options{Port: 1, Socket: "/r.sock"}},
		"-h takes a host, not":  {o: Options{Host: "redis://:S3CRET@h"}},
		"-h: bad target":        {o: Options{Host: "a b"}},
		"without a port":        {o: Options{Host: "h:1"}},
		"need TLS":              {o: Options{CACert: "ca"}},
		"negative":              {o: Options{Timeout: -1}},
		"needs a terminal":      {o: Options{AskPass: true}},
		"password: no terminal": {o: Options{AskPass: true, ReadPassword: failing}},
	} {
		targets, err := test.o.Targets(strings.Fields(test.args), nil)
		if err == nil || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: %v, %v", say, targets, err)
		}
	}
}

func TestOptionsDoNotShowThePassword(t *testing.T) {
	prompt := func() (string, error) { t.Error("printing prompts"); return "", nil }
	for _, o := range []Options{
		{AskPass: true, ReadPassword: prompt},
		{Password: "S3CRET"},
		{URI: "redis://:S3CRET@h"},
		{URI: "redis://:S3CRET@h:x"},
	} {
		if leak := leaks(o, "S3CRET"); leak != "" {
			t.Error(leak)
		}
	}
}
