package web

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"syscall"
)

// answers are by the addresses that they are for.
func (s *Server) answers() map[string]func(http.ResponseWriter, *http.Request) error {
	return map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /api/v1/incidents":                s.incidents,
		"POST /api/v1/incidents":               s.trigger,
		"POST /incidents":                      s.trigger,
		"GET /api/v1/incidents/{id}":           s.diagnosis,
		"GET /api/v1/incidents/{id}/recording": s.recording,
		"GET /api/v1/incidents/{id}/report":    s.report,
		"GET /api/v1/overview":                 s.overview,
		"GET /api/v1/live":                     s.live,
		"GET /api/v1/slow":                     s.slow,
		"GET /api/v1/topology":                 s.topology,
		"GET /api/v1/marks":                    s.marks,
		"POST /api/v1/marks":                   s.mark,
		"GET /api/v1/compare":                  s.compare,
		"GET /api/v1/openapi.json":             s.openAPI,
		"GET /{$}":                             s.overviewPage,
		"GET /incidents":                       s.incidentsPage,
		"GET /search":                          s.incidentsPage,
		"GET /incidents/{id}":                  s.incidentPage,
		"GET /live":                            s.livePage,
		"GET /topology":                        s.topologyPage,
		"GET /compare":                         s.comparePage,
		"GET /login":                           s.loginPage,
		"POST /login":                          s.login,
		"POST /logout":                         s.logout,
	}
}

// routes are all addresses of the server.
func (s *Server) routes() http.Handler {
	m := http.NewServeMux()
	for pattern, answer := range s.answers() {
		m.HandleFunc(pattern, s.answering(answer))
	}
	m.HandleFunc("GET /healthz", s.healthz)
	m.HandleFunc("GET /api/v1/session", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent) // who is not logged in does not get here
	})
	if s.o.Metrics != nil {
		m.Handle("GET /metrics", s.o.Metrics)
	}
	m.Handle("GET /assets/", assetsHandler())
	m.Handle("POST "+assistantPath, s.assistants(m))
	return withErrors(m)
}

// answering turns errors into replies, and a panic into one, too: one request must not end the watch.
func (s *site) answering(answer func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				s.log.say(fmt.Sprintf("web: %s: %v: %s", r.URL.Path, p, debug.Stack()))
				sendError(w, r, http.StatusInternalServerError, "this is a bug of slowpath; "+s.name+"'s log has more")
			}
		}()
		if err := answer(w, r); err != nil {
			s.sendFailure(w, r, err)
		}
	}
}

// statusOf is the status that fits an error.
func statusOf(err error) int {
	var (
		wrong badRequest
		none  notFound
		state conflict
		busy  tooBusy
	)
	switch {
	case errors.As(err, &wrong):
		return http.StatusBadRequest
	case errors.As(err, &none), errors.Is(err, os.ErrNotExist):
		return http.StatusNotFound
	case errors.As(err, &state):
		return http.StatusConflict
	case errors.As(err, &busy):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func (s *site) sendFailure(w http.ResponseWriter, r *http.Request, err error) {
	code, said := s.failure(r, err)
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	sendError(w, r, code, said)
}

// failure is what is said of an error: nothing of the paths that those of files have, which the log gets.
func (s *site) failure(r *http.Request, err error) (code int, said string) {
	code, said = statusOf(err), err.Error()
	switch code {
	case http.StatusNotFound:
		if none := (notFound{}); !errors.As(err, &none) {
			said = "it is not there any more"
		}
	case http.StatusInternalServerError:
		s.log.say(fmt.Sprintf("web: %s: %v", r.URL.Path, err))
		said = "this failed"
		if errno := syscall.Errno(0); errors.As(err, &errno) {
			said += ": " + errno.Error()
		}
		said += "; " + s.name + "'s log has more"
	}
	return code, said
}

// withErrors answers what has no address as everything else, not in the text of net/http.
func withErrors(m *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := m.Handler(r)
		if pattern != "" {
			m.ServeHTTP(w, r)
			return
		}
		told := &statusOnly{header: http.Header{}}
		h.ServeHTTP(told, r)
		switch told.code {
		case http.StatusMethodNotAllowed:
			w.Header().Set("Allow", told.header.Get("Allow"))
			sendError(w, r, told.code, fmt.Sprintf("%s is not possible here, but %s", quoted(r.Method),
				told.header.Get("Allow")))
		case http.StatusNotFound:
			sendError(w, r, told.code, quoted(r.URL.Path)+" is no address of this page")
		default:
			m.ServeHTTP(w, r) // a redirect to the clean path
		}
	})
}

// statusOnly takes a reply apart.
type statusOnly struct {
	header http.Header
	code   int
}

func (s *statusOnly) Header() http.Header { return s.header }

func (s *statusOnly) WriteHeader(code int) { s.code = code }

func (s *statusOnly) Write(p []byte) (int, error) { return len(p), nil }
