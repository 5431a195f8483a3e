package web

import (
	"bytes"
	"html/template"
	"net/http"
	"strconv"

	"slowpath/internal/report/layout"
	"slowpath/internal/schemas"
)

// ErrorSchema names the document of every error.
const ErrorSchema = "slowpath.error/v1"

// Error is what a request gets that fails.
type Error struct {
	Schema string `json:"schema"`
	Error  string `json:"error"` // one sentence, with what to do
}

// sendJSON answers with a document.
func sendJSON(w http.ResponseWriter, code int, document any) {
	var buf bytes.Buffer
	if err := layout.JSON(&buf, "the reply", document); err != nil {
		buf.Reset()
		code = http.StatusInternalServerError
		_ = layout.JSON(&buf, "the reply", Error{ErrorSchema, "the reply cannot be written as JSON"})
	}
	sendBytes(w, code, "application/json", buf.Bytes())
}

func sendBytes(w http.ResponseWriter, code int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // who asked has gone, otherwise
}

// openAPI answers GET /api/v1/openapi.json.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	body, _ := schemas.Get(schemas.OpenAPI) // it is in the program
	sendBytes(w, http.StatusOK, "application/json", body)
	return nil
}

// sendError answers with one sentence: as a page where a page was asked for, else as JSON.
func sendError(w http.ResponseWriter, r *http.Request, code int, said string) {
	said = bound(said)
	if !isPage(r) || !isRead(r) {
		sendJSON(w, code, Error{ErrorSchema, said})
		return
	}
	var buf bytes.Buffer
	if err := errorPage.Execute(&buf, said); err != nil {
		buf.Reset()
	}
	sendBytes(w, code, "text/html; charset=utf-8", buf.Bytes())
}

var errorPage = template.Must(template.New("error").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>slowpath</title><link rel="stylesheet" href="/assets/report.css"><link rel="stylesheet" href="/assets/app.css">
</head><body><main><h1>{{.}}</h1><p><a href="/">To the overview</a></p></main></body></html>
`))

// bound is a text of others on one line, without control characters, and not too long for a page.
func bound(s string) string { return layout.Bound(layout.OneLine(s), maxText) }

// maxText bounds a text of others in bytes.
const maxText = 1000

// quoted is a text of others in a sentence.
func quoted(s string) string { return strconv.Quote(layout.Bound(layout.OneLine(s), 100)) }
