package profile

import (
	"errors"
	"strings"
	"testing"
)

func TestTargets(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:6060":  "http://127.0.0.1:6060/debug/pprof/",
		"[::1]:6060":      "http://[::1]:6060/debug/pprof/",
		"http://app:6060": "http://app:6060/debug/pprof/",
		"http://app:6060/debug/pprof/goroutine?debug=1":   "http://app:6060/debug/pprof/",
		"https://user:secret@app/internal/debug/pprof/#x": "https://app/internal/debug/pprof/",
		"http://app:6060/profiles":                        "http://app:6060/profiles/",
	} {
		ts, err := Targets([]string{text})
		if err != nil || ts[0].String() != want {
			t.Errorf("%s: %v, %v, want %s", text, ts, err, want)
		}
	}
	if ts, err := Targets([]string{"https://app"}); err != nil || ts[0].hostPort() != "app:443" {
		t.Errorf("%v, %v", ts, err)
	}
}

func TestTargetErrors(t *testing.T) {
	many := make([]string, maxTargets+1)
	for i := range many {
		many[i] = "a:1"
	}
	for want, texts := range map[string][]string{
		"lacks a host or a port": {"app"},
		"needs a URL":            {"app:6060/debug"},
		"scheme \"redis\"":       {"redis://app:6060"},
		"does not parse":         {"http://me:sec%ret@app:6060"},
		"named twice":            {"app:1", "http://app:1/"},
		"at most 16":             many,
	} {
		if _, err := Targets(texts); !errors.Is(err, ErrTarget) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "ret@") {
			t.Errorf("%v: %v", texts, err)
		}
	}
	for _, port := range []string{"0", "65536", "x"} {
		if _, err := Targets([]string{"app:" + port}); !errors.Is(err, ErrTarget) {
			t.Errorf("port %s: %v", port, err)
		}
	}
}

func FuzzTargets(f *testing.F) {
	f.Add("http://me:secret@[::1%25eth0]:6060/a/debug/pprof/heap?x#y")
	f.Add("127.0.0.1:6060")
	f.Fuzz(func(t *testing.T, text string) {
		ts, err := Targets([]string{text})
		if err != nil {
			if !errors.Is(err, ErrTarget) {
				t.Error(err)
			}
			return
		}
		if again, err := Targets([]string{ts[0].String()}); err != nil || again[0].String() != ts[0].String() {
			t.Errorf("%q is %s, and that %v (%v)", text, ts[0], again, err)
		}
	})
}
