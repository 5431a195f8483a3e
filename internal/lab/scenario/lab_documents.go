package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
)

// Documents is how many keys doc:N the clients of the lab read.
const Documents = 100

// labPassword is the password of servers whose clients log in.
const labPassword = "lab"

// fillDocuments stores n JSON documents with a number of items of about 60 bytes each, for clients to decode.
func fillDocuments(ctx context.Context, s *fleet.Instance, n, items int) error {
	for i := range n {
		if _, err := s.Do(ctx, "SET", "doc:"+itoa(i), Document(items)); err != nil {
			return fmt.Errorf("filling: %w", err)
		}
	}
	return nil
}

// Document is a JSON document with a number of items of about 60 bytes each.
func Document(items int) string {
	doc := make([]string, items)
	for i := range doc {
		doc[i] = fmt.Sprintf(`{"id":%d,"name":"item %d","price":%d.25,"tags":["a","b"]}`, i, i, i*7)
	}
	return "[" + strings.Join(doc, ",") + "]"
}

// FillDocuments stores all documents, with a number of items each.
func FillDocuments(ctx context.Context, s *fleet.Instance, items int) error {
	return fillDocuments(ctx, s, Documents, items)
}

// smallReads are GETs of the documents.
func smallReads() []clients.Command {
	return []clients.Command{{Args: []string{"GET", "doc:{n}"}}}
}

// readsAndWrites are four reads to a write.
func readsAndWrites() []clients.Command {
	return []clients.Command{
		{Args: []string{"GET", "doc:{n}"}, Weight: 4},
		{Args: []string{"SET", "doc:{n}", "some value"}},
	}
}

// mixedReads are nine reads to a write of a small value.
func mixedReads() []clients.Command {
	return []clients.Command{{Args: []string{"GET", "doc:{n}"}, Weight: 9}, {Args: []string{"SET", "doc:{n}", "x"}}}
}

// distantServer starts a server with documents behind a proxy that delays each reply, as if the server were in another
// data centre. Clients dial addr.
func (l *Lab) distantServer(ctx context.Context, spec fleet.Spec, delay time.Duration) (s *fleet.Instance, addr string,
	err error,
) {
	if s, err = l.Start(ctx, spec); err != nil {
		return nil, "", err
	}
	if err := fillDocuments(ctx, s, Documents, 3); err != nil {
		return nil, "", err
	}
	addr, err = (&fault.Proxy{Server: s.Addr, ReplyDelay: delay}).Start(ctx, l)
	return s, addr, err
}
