package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"slowpath/internal/assistant"
)

// assistantPath is where assistants ask over the Model Context Protocol. They only read, whatever the method.
const assistantPath = "/mcp"

// assistants answers POST /mcp by what api answers.
func (s *Server) assistants(api http.Handler) http.Handler {
	server := assistant.New(assistant.Options{
		Version: s.o.Version,
		Agent: func(ctx context.Context, path string) ([]byte, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
			if err != nil {
				return nil, err
			}
			reply := &wholeReply{header: http.Header{}, code: http.StatusOK}
			api.ServeHTTP(reply, r)
			if reply.code == http.StatusOK {
				return reply.body.Bytes(), nil
			}
			var said Error
			if err := json.Unmarshal(reply.body.Bytes(), &said); err != nil {
				return nil, fmt.Errorf("the agent answers with %d", reply.code)
			}
			return nil, errors.New(said.Error)
		},
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
}

// wholeReply keeps a reply.
type wholeReply struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (w *wholeReply) Header() http.Header { return w.header }

func (w *wholeReply) WriteHeader(code int) { w.code = code }

func (w *wholeReply) Write(p []byte) (int, error) { return w.body.Write(p) }
