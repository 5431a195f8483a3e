package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"slowpath/internal/agent/door"
)

// minToken is the shortest token that is taken: 16 characters of base64 are 96 bits.
const minToken = 16

// access decides who may see and change what.
type access struct {
	loopback, anyAddress bool
	writes               bool
	secure               bool                         // TLS
	hosts                []string                     // names in the Host header that are this agent's
	address              string                       // to name in messages
	tenants              map[[sha256.Size]byte]string // by the sums of their tokens; empty: everybody sees all
	origins              *http.CrossOriginProtection
	sessions             *sessions
	failures             *failures
	csrfKey              []byte
	log                  *limitedLog
}

func newAccess(o Options, log *limitedLog) (*access, error) {
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil || port == "" {
		return nil, fmt.Errorf("--listen %s is no address: give HOST:PORT, such as 127.0.0.1:7380", o.Listen)
	}
	ip, _ := netip.ParseAddr(host)
	a := &access{
		loopback: host == "localhost" || ip.IsLoopback(), anyAddress: host == "" || ip.IsUnspecified(),
		writes: o.AllowWrites, secure: o.TLS != nil, address: o.Listen, tenants: map[[sha256.Size]byte]string{},
		origins: http.NewCrossOriginProtection(), sessions: newSessions(o.Now), failures: newFailures(o.Now),
		csrfKey: []byte(secret()), log: log,
	}
	for token, tenant := range o.tokens() {
		a.tenants[sha256.Sum256([]byte(token))] = tenant
	}
	if err := a.sufficient(o); err != nil {
		return nil, err
	}
	a.writes = a.writes || a.loopback
	if a.loopback || a.anyAddress {
		a.hosts = append(a.hosts, "localhost", "127.0.0.1", "::1")
	}
	for _, name := range append([]string{host}, o.HostNames...) {
		a.hosts = append(a.hosts, hostName(name))
	}
	return a, nil
}

// sufficient says which flags are missing for the address that is listened at.
func (a *access) sufficient(o Options) error {
	var missing []string
	tokens := o.tokens()
	if len(tokens) == 0 {
		missing = append(missing, "--token-file FILE")
	}
	if o.TLS == nil {
		missing = append(missing, "--tls-cert FILE --tls-key FILE")
	}
	switch {
	case !a.loopback && len(missing) > 0:
		return fmt.Errorf("other hosts can reach --listen %s: add %s, or listen at 127.0.0.1:7380", o.Listen,
			strings.Join(missing, " "))
	}
	for token := range tokens {
		if len(token) < minToken {
			return fmt.Errorf("a token has %d characters, which can be guessed: "+
				"use %d or more, such as those of: head -c 24 /dev/urandom | base64", len(token), minToken)
		}
	}
	return nil
}

// tokens are those that let somebody in, with whose rows they show.
func (o Options) tokens() map[string]string {
	if o.Token != "" {
		return map[string]string{o.Token: ""}
	}
	return o.Tenants
}

// hostName is a host without its port, dot and brackets, in lower case.
func hostName(s string) string {
	if h, _, err := net.SplitHostPort(s); err == nil {
		s = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(s, "[]"), "."))
}

// isOurs: the Host header names this agent. A page of somebody else, whose name was made to point to this address
// (DNS rebinding), has its own name there. A number cannot be made to point elsewhere.
func (a *access) isOurs(host string) bool {
	name := hostName(host)
	if slices.Contains(a.hosts, name) {
		return name != ""
	}
	_, err := netip.ParseAddr(name)
	return err == nil && a.anyAddress
}

// Paths that need no login: they tell nothing of what is watched.
func isOpen(path string) bool {
	return path == "/healthz" || path == "/login" || strings.HasPrefix(path, "/assets/")
}

// wrap checks each request before anything else looks at it.
func (a *access) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		r.Body = http.MaxBytesReader(w, r.Body, door.MaxBodyBytes)
		if len(r.RequestURI) > maxURL {
			sendError(w, r, http.StatusRequestURITooLong, fmt.Sprintf("the address is longer than %d bytes", maxURL))
			return
		}
		if code, err := a.refuses(r); err != nil {
			sendError(w, r, code, err.Error())
			return
		}
		tenant, known := a.known(r)
		if !isOpen(r.URL.Path) && !known {
			a.demandLogin(w, r)
			return
		}
		if code, err := a.refusesWrite(r); err != nil {
			sendError(w, r, code, err.Error())
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tenantKey{}, tenant)))
	})
}

// tenantKey is that of the tenant of a request.
type tenantKey struct{}

// maxURL bounds an address with its parameters in bytes.
const maxURL = 4096

// policy lets a page load what this server has, and nothing else; nobody may show it in a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store")
}

// refuses: the request is not for this agent, or another site makes a browser send it.
func (a *access) refuses(r *http.Request) (int, error) {
	if !a.isOurs(r.Host) {
		return http.StatusMisdirectedRequest, fmt.Errorf(
			"%s is not a name of this page: open %s, or start slowpath with --host-name", quoted(r.Host), a.address)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return 0, nil
	}
	if isRead(r) && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" &&
		!strings.HasPrefix(r.URL.Path, "/api/") {
		return 0, nil // somebody follows a link to a page
	}
	return http.StatusForbidden, errors.New("another site made the browser send this")
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// refusesWrite: the request would change something, and may not.
func (a *access) refusesWrite(r *http.Request) (int, error) {
	if isRead(r) {
		return 0, nil
	}
	if err := a.origins.Check(r); err != nil {
		return http.StatusForbidden, errors.New("another site made the browser send this")
	}
	if r.URL.Path == "/login" || r.URL.Path == "/logout" {
		if !a.isForm(r) || r.ParseForm() != nil || !a.hasCSRF(r, r.PostForm.Get("csrf")) {
			return http.StatusForbidden, errors.New("the form is not of this page, or old: load the page again")
		}
		return 0, nil
	}
	if r.URL.Path == assistantPath { // it only reads
		return 0, nil
	}
	if !a.writes {
		return http.StatusForbidden, errors.New(
			"this page is read-only for other hosts: start the agent with --allow-writes")
	}
	_, err := r.Cookie(a.cookieName())
	isBrowser := err == nil || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	if isBrowser && !a.hasCSRF(r, r.Header.Get("X-CSRF-Token")) {
		return http.StatusForbidden, errors.New("the page is old: load it again")
	}
	if kind := r.Header.Get("Content-Type"); kind != "" && mediaType(kind) != "application/json" {
		return http.StatusUnsupportedMediaType, errors.New("send JSON, with the header Content-Type: application/json")
	}
	return 0, nil
}

func (a *access) isForm(r *http.Request) bool {
	return mediaType(r.Header.Get("Content-Type")) == "application/x-www-form-urlencoded"
}

func mediaType(header string) string {
	kind, _, _ := strings.Cut(header, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// csrf is a text that only pages of this agent, shown to this session, have.
func (a *access) csrf(r *http.Request) string {
	mac := hmac.New(sha256.New, a.csrfKey)
	if c, err := r.Cookie(a.cookieName()); err == nil {
		mac.Write([]byte(c.Value))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (a *access) hasCSRF(r *http.Request, got string) bool {
	return subtle.ConstantTimeCompare([]byte(got), []byte(a.csrf(r))) == 1
}

// known: the request has a token, or the cookie of a login; or none is needed. It is of that tenant.
func (a *access) known(r *http.Request) (tenant string, ok bool) {
	if len(a.tenants) == 0 {
		return "", true
	}
	if c, err := r.Cookie(a.cookieName()); err == nil {
		if tenant, ok := a.sessions.tenant(c.Value); ok {
			return tenant, true
		}
	}
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") {
		return "", false
	}
	return a.tenantOf(r, strings.TrimSpace(token))
}

// tenantOf looks a token up by its sum, in a time that does not tell how much of it is right. A right one is taken
// whoever guessed before: behind a proxy all requests come from one address. That a token cannot be guessed is due to
// its length.
func (a *access) tenantOf(r *http.Request, token string) (tenant string, ok bool) {
	if tenant, ok = a.tenants[sha256.Sum256([]byte(token))]; ok {
		return tenant, true
	}
	from := remoteHost(r)
	a.failures.add(from)
	a.log.say("web: wrong token from " + from)
	return "", false
}

// guesses: this wrong token was one too many.
func (a *access) guesses(w http.ResponseWriter, r *http.Request) bool {
	if !a.failures.tooMany(remoteHost(r)) {
		return false
	}
	w.Header().Set("Retry-After", "60")
	return true
}

func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return "unknown"
	}
	return host
}

// demandLogin answers who is not logged in: a browser with the form, others with an error.
func (a *access) demandLogin(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" && a.guesses(w, r) {
		sendError(w, r, http.StatusTooManyRequests, "too many wrong tokens: wait a minute, or send the right one")
		return
	}
	if isRead(r) && isPage(r) {
		http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="slowpath"`)
	sendError(w, r, http.StatusUnauthorized, "a token is needed: send the header Authorization: Bearer TOKEN")
}

// isPage: what is asked for is for people.
func isPage(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/api/") && r.URL.Path != "/metrics" && r.URL.Path != "/healthz" &&
		r.URL.Path != "/incidents" || r.URL.Path == "/incidents" && isRead(r)
}

func (a *access) cookieName() string {
	if a.secure {
		return "__Host-slowpath" // a browser takes it only over TLS, for this host alone
	}
	return "slowpath"
}

// cookie is that of a login; an age below 0 removes it.
func (a *access) cookie(value string, age time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: a.cookieName(), Value: value, Path: "/", HttpOnly: true, Secure: a.secure,
		SameSite: http.SameSiteStrictMode, MaxAge: int(age / time.Second),
	}
}
