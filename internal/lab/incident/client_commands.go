package incident

import (
	"context"
	"fmt"
	"strings"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// smallReads are GETs of the keys that fillDocuments makes.
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

// fillDocuments stores n JSON documents of so many items, of about 60 bytes each: what a client has to take apart.
func fillDocuments(ctx context.Context, s *fleet.Instance, n, items int) error {
	doc := make([]string, items)
	for i := range doc {
		doc[i] = fmt.Sprintf(`{"id":%d,"name":"item %d","price":%d.25,"tags":["a","b"]}`, i, i, i*7)
	}
	value := "[" + strings.Join(doc, ",") + "]"
	for i := range n {
		if _, err := s.Do(ctx, "SET", "doc:"+itoa(i), value); err != nil {
			return fmt.Errorf("filling: %w", err)
		}
	}
	return nil
}

// distantServer starts a server with documents behind a proxy that holds each reply for some milliseconds, as one in
// another datacentre; addr is where clients find it.
func (l *Lab) distantServer(ctx context.Context, spec fleet.Spec, ms int) (s *fleet.Instance, addr string, err error) {
	if s, err = l.Start(ctx, spec); err != nil {
		return nil, "", err
	}
	if err := fillDocuments(ctx, s, documents, 3); err != nil {
		return nil, "", err
	}
	addr, err = l.delayProxy(s.Addr, ms)
	return s, addr, err
}

// documents is how many keys the clients of the lab read.
const documents = 100

// labPassword is that of servers whose clients have to log in.
const labPassword = "lab"
