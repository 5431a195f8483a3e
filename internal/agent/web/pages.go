package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"slowpath/internal/report"
)

var (
	//go:embed pages/*.html
	pageFiles embed.FS
	//go:embed assets
	assetFiles embed.FS

	pageTemplates = func() map[string]*template.Template {
		out := map[string]*template.Template{}
		for _, name := range []string{
			"overview", "incidents", "incident", "live", "topology", "compare", "login", "fleet",
			"fleet-question", "fleet-incident", "fleet-compare",
		} {
			out[name] = template.Must(template.New(name+".html").ParseFS(pageFiles, "pages/base.html",
				"pages/"+name+".html"))
		}
		return out
	}()
)

// frame is what all pages have.
type frame struct {
	Page, Title, CSRF, Version string
	Scripts                    []string
	Nav                        []link
	Status                     *statusPill
	LoggedIn                   bool
	Body                       template.HTML // made by a template of ours
}

type link struct {
	Name, Path string
	Here       bool
}

type statusPill struct{ Class, Said string }

// site is what the page of an agent and that of many hosts have in common.
type site struct {
	access  *access
	log     *limitedLog
	version string
	name    string // of what writes its log
	nav     func(page string) []link
	status  func() *statusPill // in the head of every page
}

func newSite(o Options, name string, nav func(string) []link, status func() *statusPill) (site, error) {
	s := site{log: &limitedLog{to: o.Log, now: o.Now}, version: o.Version, name: name, nav: nav, status: status}
	var err error
	s.access, err = newAccess(o, s.log)
	return s, err
}

// page answers with a page: data is what its template takes.
func (s *site) page(w http.ResponseWriter, r *http.Request, name, title string, data any) error {
	return s.pageWith(w, r, http.StatusOK, name, title, data)
}

func (s *site) pageWith(w http.ResponseWriter, r *http.Request, code int, name, title string, data any) error {
	var body, buf bytes.Buffer
	t := pageTemplates[name]
	if err := t.Execute(&body, data); err != nil {
		return fmt.Errorf("making the page: %w", err)
	}
	f := frame{
		Page: name, Title: title, CSRF: s.access.csrf(r), Version: bound(s.version),
		Body: template.HTML(body.String()), // what the template has escaped
	}
	if _, err := assetFiles.Open("assets/" + name + ".js"); err == nil {
		f.Scripts = append(f.Scripts, name+".js")
	}
	if name != "login" {
		f.Status = s.status()
		f.LoggedIn, f.Nav = len(s.access.tenants) > 0, s.nav(name)
	}
	if err := t.ExecuteTemplate(&buf, "base", f); err != nil {
		return fmt.Errorf("making the page: %w", err)
	}
	sendBytes(w, code, "text/html; charset=utf-8", buf.Bytes())
	return nil
}

// navigation is that of an agent's pages.
func navigation(page string) []link {
	return []link{
		{"Overview", "/", page == "overview"},
		{"Incidents", "/incidents", page == "incidents" || page == "incident"},
		{"Live", "/live", page == "live"},
		{"Topology", "/topology", page == "topology"},
		{"Compare", "/compare", page == "compare"},
	}
}

// state says how the agent is.
func (s *Server) state() *statusPill {
	h := s.health()
	watched := 0
	for _, t := range h.Targets {
		if t.State == StateWatched {
			watched++
		}
	}
	switch {
	case h.Status == Failed || watched == 0:
		return &statusPill{"failed", "nothing is watched"}
	case h.Status == Degraded:
		return &statusPill{"degraded", fmt.Sprintf("watching %d of %d servers; some sources fail", watched,
			len(h.Targets))}
	}
	return &statusPill{"ok", "watching " + count(watched, "server")}
}

// assetsHandler serves the files that pages load. They are the program's own.
func assetsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/assets/")
		body, err := assetFiles.ReadFile("assets/" + name)
		if name == "report.css" {
			body, err = []byte(report.PageStyle()), nil
		}
		if err != nil {
			sendJSON(w, http.StatusNotFound, Error{ErrorSchema, quoted(name) + " is no file of this page"})
			return
		}
		sum := sha256.Sum256(body)
		w.Header().Set("Cache-Control", "no-cache") // asked for each time, and sent when it changed
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
	})
}

// loginPage answers GET /login.
func (s *site) loginPage(w http.ResponseWriter, r *http.Request) error {
	return s.loginForm(w, r, http.StatusOK, r.URL.Query().Get("next"), "")
}

func (s *site) loginForm(w http.ResponseWriter, r *http.Request, code int, next, failure string) error {
	return s.pageWith(w, r, code, "login", "slowpath: log in", struct{ CSRF, Next, Failure string }{
		s.access.csrf(r), ownPath(next), failure,
	})
}

// login answers POST /login: who knows the token gets a cookie.
func (s *site) login(w http.ResponseWriter, r *http.Request) error {
	next := ownPath(r.PostForm.Get("next"))
	if len(s.access.tenants) == 0 {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return nil
	}
	tenant, ok := s.access.tenantOf(r, strings.TrimSpace(r.PostForm.Get("token")))
	if !ok {
		if s.access.guesses(w, r) {
			return s.loginForm(w, r, http.StatusTooManyRequests, next, "Too many wrong tokens: wait a minute.")
		}
		return s.loginForm(w, r, http.StatusUnauthorized, next, "This is not the token.")
	}
	http.SetCookie(w, s.access.cookie(s.access.sessions.begin(tenant), sessionAge))
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// logout answers POST /logout.
func (s *site) logout(w http.ResponseWriter, r *http.Request) error {
	if c, err := r.Cookie(s.access.cookieName()); err == nil {
		s.access.sessions.finish(c.Value)
	}
	http.SetCookie(w, s.access.cookie("", -time.Second))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
	return nil
}

// ownPath is a path of this server, whatever the parameter says.
func ownPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/") || len(next) > maxURL ||
		strings.HasPrefix(u.Path, "//") || strings.ContainsAny(next, "\\\r\n\t") || strings.HasPrefix(next, "//") {
		return "/"
	}
	return u.RequestURI()
}
