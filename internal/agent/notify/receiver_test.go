package notify_test

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"slowpath/internal/agent/notify"
	"slowpath/internal/house/await"
	"slowpath/internal/house/memnet"
)

// TestParse: what is refused, and how that is said; secrets are shown nowhere.
func TestParse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hook")
	write := func(text string) string {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "@" + file
	}
	for text, want := range map[string]string{
		"https://hooks.slack.com/services/T0/B0/secret": "slack at https://hooks.slack.com",
		"alertmanager+http://127.0.0.1:9093":            "alertmanager at http://127.0.0.1:9093",
		"https://am.example:9093/api/v2/alerts":         "alertmanager at https://am.example:9093",
		"http://[::1]:80/x":                             "json at http://[::1]:80",
		"https://user:secret@example.com/hook":          "json at https://example.com",
	} {
		if r, err := notify.Parse(text, false); err != nil || r.String() != want {
			t.Errorf("%s: %q, %v", text, r, err)
		}
	}
	for text, want := range map[string]string{
		"http://example.com/secret":  "is not encrypted",
		"ftp://example.com/secret":   "use https://",
		"teams+https://example.com/": "is not known; use json+",
		"secret":                     "is no address",
		"@/does/not/exist":           "no such file",
	} {
		_, err := notify.Parse(text, false)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := notify.Parse("http://example.com/", true); err != nil {
		t.Error(err)
	}
	r, err := notify.Parse(write("https://example.com/hook\nAuthorization: Bearer secret\nX-Team: a\n"), false)
	if err != nil || r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("X-Team") != "a" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, broken := range []string{"", "https://example.com/hook\nno header"} {
		if _, err := notify.Parse(write(broken), false); err == nil {
			t.Errorf("%q was taken", broken)
		}
	}
}

// TestHeadersAreSent, with the user of an address as basic auth.
func TestHeadersAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		n, _ := started(t, notify.Options{Dial: memnet.Serve(t, s)}, "http://ops:secret@127.0.0.1:80")
		n.Send(judged(t, "1"))
		synctest.Wait()
		if len(s.got()) != 1 || !strings.HasPrefix(s.heads[0].Get("Authorization"), "Basic ") {
			t.Errorf("%d messages, with %v", len(s.got()), s.heads)
		}
	})
}

// TestTLS: a certificate that is not trusted is refused at once.
func TestTLS(t *testing.T) {
	s := &sink{}
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	n, said := started(t, notify.Options{}, server.URL)
	n.Send(judged(t, "1"))
	await.Until(t, "an error", func() bool { return n.Stats().Failed == 1 })
	if len(s.got()) > 0 || !strings.Contains(said.text(), "certificate") {
		t.Errorf("log: %s", said.text())
	}
}
