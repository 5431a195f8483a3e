package web_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"slowpath/internal/agent/web"
)

// certificate is one that the test signs itself.
func certificate(t testing.TB) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// TestAddressesThatNeedMore: what other hosts can reach needs a token and TLS; the error names the flags that are
// missing.
func TestAddressesThatNeedMore(t *testing.T) {
	withTLS := certificate(t)
	for _, c := range []struct {
		o    web.Options
		want string // of the error; empty: none
	}{
		{web.Options{Listen: "127.0.0.1:7380"}, ""},
		{web.Options{Listen: "localhost:7380"}, ""},
		{web.Options{Listen: "[::1]:7380"}, ""},
		{web.Options{Listen: "127.8.0.1:7380"}, ""},
		{web.Options{Listen: ":7380"}, "--token-file FILE --tls-cert FILE --tls-key FILE"},
		{web.Options{Listen: "0.0.0.0:7380"}, "--token-file FILE --tls-cert FILE --tls-key FILE"},
		{web.Options{Listen: "[::]:7380", TLS: withTLS}, "add --token-file FILE, or listen at 127.0.0.1"},
		{web.Options{Listen: "10.0.0.5:7380", Token: token}, "add --tls-cert FILE --tls-key FILE"},
		{web.Options{Listen: "redis.example:7380", Token: token}, "add --tls-cert FILE --tls-key FILE"},
		{web.Options{Listen: "127.0.0.1.evil.example:7380"}, "--token-file"},
		{web.Options{Listen: "10.0.0.5:7380", Token: token, TLS: withTLS}, ""},
		{web.Options{Listen: "10.0.0.5:7380", Token: "short", TLS: withTLS}, "can be guessed"},
		{web.Options{Listen: "127.0.0.1:7380", Token: "short"}, "can be guessed"},
		{web.Options{Listen: "7380"}, "give HOST:PORT"},
		{web.Options{Listen: "127.0.0.1:"}, "give HOST:PORT"},
	} {
		_, err := web.New(complete(t, c.o))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s, token %q, TLS %v: %v, want %q", c.o.Listen, c.o.Token, c.o.TLS != nil, err, c.want)
		}
		if err != nil && c.o.Token != "" && strings.Contains(err.Error(), c.o.Token) {
			t.Errorf("the error shows the token: %v", err)
		}
	}
}

// TestHostHeader: a name in the Host header that is not the agent's gets nothing, so that no page of somebody else can
// read it by pointing its own name to this address.
func TestHostHeader(t *testing.T) {
	s := start(t, web.Options{HostNames: []string{"slowpath.example"}})
	for host, ok := range map[string]bool{
		"localhost": true, "localhost:7380": true, "LOCALHOST:80": true, "localhost.": true, "127.0.0.1": true,
		"127.0.0.1:1": true, "[::1]:7380": true, "slowpath.example": true, "Slowpath.Example:443": true,
		"evil.example": false, "evil.example:7380": false, "localhost.evil.example": false,
		"127.0.0.1.evil.example": false,
		"10.0.0.5:7380":          false, "0.0.0.0": false,
		"a.slowpath.example": false, "2130706433": false, "0x7f.1": false,
	} {
		for _, path := range []string{"/", "/api/v1/incidents", "/healthz", "/assets/app.js", "/login", "/api/v1/no"} {
			got := s.ask("GET", path, "", "Host: "+host)
			if refused := got.code == 421; refused == ok {
				t.Errorf("Host %s, %s: %d", host, path, got.code)
			}
			if got.code == 421 && strings.HasPrefix(path, "/api/") {
				if said := got.failure(t); !strings.Contains(said, "--host-name") {
					t.Errorf("it does not end in the fix: %s", said)
				}
			}
		}
	}
	all := start(t, web.Options{Listen: "0.0.0.0:7380", Token: token, TLS: certificate(t)})
	for host, ok := range map[string]bool{
		"10.0.0.5:7380": true, "[fd00::1]:7380": true, "evil.example": false, "": true,
	} {
		if got := all.ask("GET", "/healthz", "", "Host: "+host); (got.code == 421) == ok {
			t.Errorf("all addresses, Host %q: %d", host, got.code)
		}
	}
}

// readable are addresses that tell what is watched.
var readable = []string{
	"/", "/incidents", "/search", "/live", "/topology", "/compare", "/incidents/20261124T031207Z-1",
	"/api/v1/incidents",
	"/api/v1/incidents/20261124T031207Z-1", "/api/v1/incidents/20261124T031207Z-1/recording",
	"/api/v1/incidents/20261124T031207Z-1/report", "/api/v1/overview", "/api/v1/live", "/api/v1/slow",
	"/api/v1/topology",
	"/api/v1/marks", "/api/v1/compare", "/api/v1/session", "/metrics", "/nowhere", "//", "/assets/../api/v1/slow",
	"/login/../topology", "/healthz/../topology", "/%2e%2e/api/v1/slow", "/assets/%2e%2e/topology",
}

// TestToken: without the token nothing is told but whether the agent lives, whatever the path; with it all is.
func TestToken(t *testing.T) {
	s := start(t, web.Options{Token: token})
	for _, path := range readable {
		for _, header := range []string{
			"X: none", "Authorization: Bearer wrong-token-of-16", "Authorization: Basic " + token,
			"Authorization: Bearer",
			"Cookie: slowpath=" + token, "Cookie: __Host-slowpath=x", "Authorization: Bearer " + token + "x",
			"Authorization: Bearer " + token[1:],
		} {
			got := s.ask("GET", path, "", header)
			switch toLogin := strings.HasPrefix(got.header.Get("Location"), "/login?next=%2F"); {
			case got.code == 401, got.code == 429, got.code == 303 && toLogin:
			case got.code/100 == 3 || got.code == 404 && strings.HasPrefix(path, "/assets"): // to the clean path
				if strings.Contains(got.body, "slowpath.slow") {
					t.Errorf("%s tells of calls", path)
				}
			default:
				t.Errorf("%s with %s: %d %q", path, header, got.code, got.header.Get("Location"))
			}
		}
	}
	open := start(t, web.Options{Token: token})
	for _, path := range readable[:6] {
		if got := open.ask("GET", path, "", "Authorization: Bearer "+token); got.code >= 400 && path != "/compare" {
			t.Errorf("%s with the token: %d", path, got.code)
		}
	}
	if got := open.ask("GET", "/api/v1/incidents", ""); got.code != 401 ||
		!strings.Contains(got.failure(t), "Authorization: Bearer") || got.header.Get("WWW-Authenticate") == "" {
		t.Errorf("%d %s", got.code, got.body)
	}
	if got := open.ask("GET", "/healthz", ""); got.code != 200 || strings.Contains(got.body, "6379") {
		t.Errorf("who is not logged in: %d %s", got.code, got.body)
	}
	if got := open.ask("GET", "/healthz", "", "Authorization: bearer "+token); !strings.Contains(got.body, "6379") {
		t.Errorf("with the token: %s", got.body)
	}
}

// TestWrongTokens: who guesses is told to wait, also by the form, and the log gets a bounded number of lines without
// the token. All requests come from one address here, as behind a proxy: who has the right token, is logged in, or
// wants to log in, is not kept out.
func TestWrongTokens(t *testing.T) {
	lines := make(chan string, 1000)
	now := time.Date(2026, 11, 24, 3, 12, 0, 0, time.UTC)
	s := start(t, web.Options{
		Token: token, Log: func(line string) { lines <- line }, Now: func() time.Time { return now },
	})
	for i := range 200 {
		got := s.ask("GET", "/api/v1/slow", "", fmt.Sprintf("Authorization: Bearer guess-%d", i))
		if want := 401; i >= 10 {
			want = 429
			if got.code != want || got.header.Get("Retry-After") == "" {
				t.Fatalf("guess %d: %d %v", i, got.code, got.header)
			}
		} else if got.code != want {
			t.Fatalf("guess %d: %d", i, got.code)
		}
	}
	if got := s.ask("GET", "/api/v1/slow", "", "Authorization: Bearer "+token); got.code != 200 {
		t.Errorf("the right token after 200 guesses: %d", got.code)
	}
	if got := s.ask("GET", "/", ""); got.code != 303 {
		t.Errorf("who wants to log in after 200 guesses: %d", got.code)
	}
	form := url.Values{"token": {"guess-201"}, "csrf": {csrfOf(t, s.ask("GET", "/login", "").body)}}
	if got := s.login(form); got.code != 429 || got.header.Get("Retry-After") == "" {
		t.Errorf("another guess, by the form: %d", got.code)
	}
	form.Set("token", token)
	got := s.login(form)
	if got.code != 303 || got.header.Get("Set-Cookie") == "" {
		t.Errorf("the right token by the form: %d", got.code)
	}
	cookie, _, _ := strings.Cut(got.header.Get("Set-Cookie"), ";")
	if got := s.ask("GET", "/api/v1/slow", "", "Cookie: "+cookie); got.code != 200 {
		t.Errorf("who is logged in: %d", got.code)
	}
	if n := len(lines); n == 0 || n > 20 {
		t.Errorf("%d lines", n)
	}
	for range len(lines) {
		if line := <-lines; strings.Contains(line, "guess-") || strings.Contains(line, token) {
			t.Errorf("the log shows what was sent: %s", line)
		}
	}
	now = now.Add(time.Minute)
	if got := s.ask("GET", "/api/v1/slow", "", "Authorization: Bearer guess"); got.code != 401 {
		t.Errorf("another guess a minute later: %d", got.code)
	}
}

var csrfField = regexp.MustCompile(`<meta name="csrf" content="([^"]+)">`)

func csrfOf(t testing.TB, page string) string {
	t.Helper()
	m := csrfField.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no token in the page: %.500s", page)
	}
	return m[1]
}

func (s *site) login(form url.Values, header ...string) answer {
	s.Helper()
	return s.ask("POST", "/login", form.Encode(), append(header, "Content-Type: application/x-www-form-urlencoded")...)
}

// TestLogin: the form gives a cookie that no script reads, no other site sends, and no plain connection carries; it
// ends with the session. It leads back to a path of this agent alone.
func TestLogin(t *testing.T) {
	now := time.Date(2026, 11, 24, 3, 12, 0, 0, time.UTC)
	s := start(t, web.Options{
		Listen: "10.0.0.5:7380", HostNames: []string{"127.0.0.1"}, Token: token, TLS: certificate(t),
		Now: func() time.Time { return now },
	})
	csrf := csrfOf(t, s.ask("GET", "/login?next=/topology", "").body)
	for _, c := range []struct {
		form url.Values
		code int
	}{
		{url.Values{"token": {token}}, 403},
		{url.Values{"token": {token}, "csrf": {"wrong"}}, 403},
		{url.Values{"token": {"wrong"}, "csrf": {csrf}}, 401},
	} {
		if got := s.login(c.form); got.code != c.code || got.header.Get("Set-Cookie") != "" {
			t.Errorf("%v: %d, cookie %q", c.form, got.code, got.header.Get("Set-Cookie"))
		}
	}
	if got := s.login(url.Values{"token": {token}, "csrf": {csrf}}, "Origin: https://evil.example"); got.code != 403 {
		t.Errorf("from another site: %d", got.code)
	}
	for next, want := range map[string]string{
		"/topology": "/topology", "/?range=6h": "/?range=6h", "": "/", "https://evil.example/": "/",
		"//evil.example": "/", `/\evil.example`: "/", `\\evil.example`: "/", "javascript:alert(1)": "/",
		"/%0d%0aSet-Cookie:x": "/%0d%0aSet-Cookie:x", "/\r\nX: y": "/", "///evil.example": "/", "topology": "/",
	} {
		got := s.login(url.Values{"token": {token}, "csrf": {csrf}, "next": {next}})
		if got.code != 303 || got.header.Get("Location") != want {
			t.Errorf("next %q: %d to %q, want %q", next, got.code, got.header.Get("Location"), want)
		}
	}
	set := s.login(url.Values{"token": {token}, "csrf": {csrf}}).header.Get("Set-Cookie")
	for _, want := range []string{
		"__Host-slowpath=", "Path=/", "HttpOnly", "Secure", "SameSite=Strict", "Max-Age=43200",
	} {
		if !strings.Contains(set, want) {
			t.Errorf("the cookie %q lacks %s", set, want)
		}
	}
	if strings.Contains(set, token) {
		t.Error("the cookie has the token")
	}
	cookie, _, _ := strings.Cut(set, ";")
	page := s.ask("GET", "/topology", "", "Cookie: "+cookie)
	if page.code != 200 || s.ask("GET", "/api/v1/session", "", "Cookie: "+cookie).code != 204 {
		t.Errorf("with the cookie: %d", page.code)
	}
	now = now.Add(13 * time.Hour)
	if got := s.ask("GET", "/topology", "", "Cookie: "+cookie); got.code != 303 {
		t.Errorf("13 h later: %d", got.code)
	}
	cookie, _, _ = strings.Cut(s.login(url.Values{"token": {token}, "csrf": {csrf}}).header.Get("Set-Cookie"), ";")
	page = s.ask("GET", "/topology", "", "Cookie: "+cookie)
	out := url.Values{"csrf": {csrfOf(t, page.body)}}
	if got := s.ask("POST", "/logout", out.Encode(), "Cookie: "+cookie,
		"Content-Type: application/x-www-form-urlencoded"); got.code != 303 {
		t.Errorf("logging out: %d %s", got.code, got.body)
	}
	if got := s.ask("GET", "/topology", "", "Cookie: "+cookie); got.code != 303 {
		t.Errorf("after logging out: %d", got.code)
	}
}

// TestSessionsAreBounded: logins without end take no memory without end; the newest one works.
func TestSessionsAreBounded(t *testing.T) {
	s := start(t, web.Options{Token: token})
	csrf := csrfOf(t, s.ask("GET", "/login", "").body)
	var first, last string
	for i := range 300 {
		last, _, _ = strings.Cut(s.login(url.Values{"token": {token}, "csrf": {csrf}}).header.Get("Set-Cookie"), ";")
		if i == 0 {
			first = last
		}
	}
	if s.ask("GET", "/topology", "", "Cookie: "+first).code != 303 ||
		s.ask("GET", "/topology", "", "Cookie: "+last).code != 200 {
		t.Error("the first session still is, or the last one is not")
	}
}

// TestForgedRequests: another site cannot make a browser change anything, nor read.
func TestForgedRequests(t *testing.T) {
	asked := 0
	s := start(t, web.Options{Trigger: func(string) (string, error) {
		asked++
		return "20261124T031207Z-1", nil
	}})
	own := "Origin: " + s.url
	csrf := "X-CSRF-Token: " + csrfOf(t, s.ask("GET", "/", "").body)
	const asJSON = "Content-Type: application/json"
	for _, c := range []struct {
		name   string
		header []string
		code   int
	}{
		{"a script of this host", nil, 202},
		{"a script that sends JSON", []string{asJSON}, 202},
		{"the page", []string{asJSON, own, csrf, "Sec-Fetch-Site: same-origin"}, 202},
		{"the page, without its token", []string{asJSON, own, "Sec-Fetch-Site: same-origin"}, 403},
		{"the page, with another token", []string{asJSON, own, "X-CSRF-Token: x", "Sec-Fetch-Site: same-origin"}, 403},
		{"another site", []string{asJSON, "Origin: https://evil.example", "Sec-Fetch-Site: cross-site", csrf}, 403},
		{"another site, old browser", []string{asJSON, "Origin: https://evil.example", csrf}, 403},
		{"another port of this host", []string{asJSON, "Origin: http://127.0.0.1:1", "Sec-Fetch-Site: same-site", csrf}, 403},
		{"a frame without origin", []string{asJSON, "Origin: null", "Sec-Fetch-Site: cross-site", csrf}, 403},
		{"a form", []string{"Content-Type: application/x-www-form-urlencoded"}, 415},
		{"a form as text", []string{"Content-Type: text/plain"}, 415},
		{"a form with files", []string{"Content-Type: multipart/form-data; boundary=x"}, 415},
	} {
		for _, path := range []string{"/api/v1/incidents", "/incidents"} {
			before := asked
			got := s.ask("POST", path, "", c.header...)
			if got.code != c.code || (asked > before) != (c.code == 202) {
				t.Errorf("%s, %s: %d, want %d: %s", c.name, path, got.code, c.code, got.body)
			}
		}
	}
	for path, fetch := range map[string][]string{
		"/api/v1/compare?mark=2026-11-24T03:12:00Z": {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"},
		"/api/v1/slow":     {"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors", "Origin: http://localhost:1"},
		"/api/v1/topology": {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"},
		"/topology":        {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"},
		"/live":            {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"},
	} {
		if got := s.ask("GET", path, "", fetch...); got.code != 403 {
			t.Errorf("%s with %v: %d", path, fetch, got.code)
		}
	}
	if got := s.ask("GET", "/topology", "", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
		"Sec-Fetch-Dest: document"); got.code != 200 {
		t.Errorf("who follows a link: %d", got.code)
	}
}

// TestReadOnly: other hosts change nothing unless it was allowed.
func TestReadOnly(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		asked := 0
		s := start(t, web.Options{
			Listen: "0.0.0.0:7380", Token: token, TLS: certificate(t), AllowWrites: allowed,
			Trigger: func(string) (string, error) { asked++; return "20261124T031207Z-1", nil },
		})
		got := s.ask("POST", "/api/v1/incidents", "", "Authorization: Bearer "+token)
		if allowed && (got.code != 202 || asked != 1) || !allowed && (got.code != 403 || asked != 0 ||
			!strings.Contains(got.failure(t), "--allow-writes")) {
			t.Errorf("allowed %v: %d %s", allowed, got.code, got.body)
		}
		got = s.ask("POST", "/api/v1/marks", `{"text":"x"}`, "Content-Type: application/json")
		if got.code != 401 {
			t.Errorf("without the token: %d", got.code)
		}
		page := s.ask("GET", "/", "", "Authorization: Bearer "+token).body
		if strings.Contains(page, `data-post="/api/v1/marks"`) != allowed {
			t.Errorf("allowed %v, and the page has the form: %v", allowed, !allowed)
		}
	}
}

// TestHeaders: a browser may show pages in no frame, run only scripts of this agent, and guess no types.
func TestHeaders(t *testing.T) {
	s := start(t, web.Options{})
	for _, path := range []string{
		"/", "/live", "/api/v1/slow", "/api/v1/nothing", "/nothing", "/assets/app.js", "/login", "/healthz",
	} {
		got := s.ask("GET", path, "")
		csp := got.header.Get("Content-Security-Policy")
		for _, want := range []string{
			"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'",
			"form-action 'self'",
		} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy %q lacks %s", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
			t.Errorf("%s: the policy allows too much: %s", path, csp)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got.header.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, got.header.Get(name))
			}
		}
		for _, inline := range []string{"<style", "style=", "onclick=", "onload=", "javascript:"} {
			if path != "/assets/app.js" && strings.Contains(got.body, inline) {
				t.Errorf("%s has %s, which the policy refuses", path, inline)
			}
		}
	}
}
