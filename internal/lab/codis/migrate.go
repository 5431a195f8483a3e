package codis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"slowpath/internal/wire/resp"
)

const (
	// atOnce is how many slots migrate at a time (Codis: migration_parallel_slots).
	atOnce = 100
	// migrateTimeout is that of MIGRATE. It bounds how long the servers are silent, not the whole command.
	migrateTimeout = 20 * time.Second
	scanCount      = "1000"
	tries          = 3 // of one key
)

// migrate moves a key. Both servers do nothing else until it is there. It reports whether the key was there to move.
func migrate(ctx context.Context, from, to *server, key string) (moved bool, err error) {
	host, port, err := net.SplitHostPort(to.addr)
	if err != nil {
		return false, err
	}
	reply, err := from.ask(ctx, "MIGRATE", host, port, key, "0",
		strconv.FormatInt(migrateTimeout.Milliseconds(), 10), "REPLACE")
	return reply.Text() == "OK", err
}

// startMigration runs SLOTSMIGRATE RANGE HOST:PORT: it moves slots to a server, and replies with the number of keys
// that it moved itself; the others were moved by calls for them. The session goes on meanwhile.
func (s *session) startMigration(args []resp.Value) answer {
	if len(args) != 2 {
		return failure("give SLOTSMIGRATE FIRST-LAST HOST:PORT")
	}
	slots, err := ParseRange(string(args[0].Str))
	to := s.proxy.server(string(args[1].Str))
	switch {
	case err != nil:
		return failure("%v", err)
	case to == nil:
		return failure("%q is no server of this proxy; give one of: %s", args[1].Str, s.proxy.addrs())
	}
	r := newRequest(nil)
	go func() {
		keys, err := s.proxy.move(s.proxy.ctx, slots, to)
		r.end(fmt.Appendf(nil, ":%d\r\n", keys), err)
	}()
	return r
}

// move moves slots to a server while clients use them: keys one at a time, of some slots at once. Slots whose migration
// was broken off by an error are gone on with by the next move to the same server.
func (p *Proxy) move(ctx context.Context, slots Range, to *server) (keys int, err error) {
	if !p.moves.TryLock() {
		return 0, errors.New("slots are migrating already; wait until that has ended")
	}
	defer p.moves.Unlock()
	for first := slots.First; first <= slots.Last; first += atOnce {
		n, err := p.moveSome(ctx, Range{first, min(first+atOnce-1, slots.Last)}, to)
		keys += n
		if err != nil {
			return keys, err
		}
	}
	return keys, nil
}

// moveSome moves slots that migrate at the same time.
func (p *Proxy) moveSome(ctx context.Context, slots Range, to *server) (keys int, err error) {
	sources := map[*server]map[int]bool{}
	for n := slots.First; n <= slots.Last; n++ {
		from, err := p.slots[n].open(to)
		if err != nil {
			return 0, fmt.Errorf("slot %d: %w", n, err)
		}
		if from == nil {
			continue
		}
		if sources[from] == nil {
			sources[from] = map[int]bool{}
		}
		sources[from][n] = true
	}
	for from, open := range sources {
		n, err := drain(ctx, from, to, open)
		keys += n
		if err != nil {
			return keys, err
		}
		for n := range open {
			p.slots[n].close()
		}
	}
	return keys, nil
}

// open begins to migrate a slot, once all requests sent to its owner have replies. It returns from where; nil: it is
// there already.
func (s *slot) open(to *server) (from *server, err error) {
	s.Lock()
	defer s.Unlock()
	switch {
	case s.owner != to && s.from != nil:
		return nil, fmt.Errorf("its migration from %s to %s is not finished; finish that first", s.from.addr,
			s.owner.addr)
	case s.owner != to:
		s.inFlight.Wait()
		s.owner, s.from = to, s.owner
	}
	return s.from, nil
}

func (s *slot) close() {
	s.Lock()
	defer s.Unlock()
	s.from = nil
}

// drain moves the keys of slots away from a server. No more are written there: clients use the other server.
func drain(ctx context.Context, from, to *server, open map[int]bool) (keys int, err error) {
	own := newServer(from.addr) // a connection of its own, as the dashboard of Codis has
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go own.run(ctx)
	for cursor := "0"; ; {
		page, err := own.ask(ctx, "SCAN", cursor, "COUNT", scanCount)
		if err != nil {
			return keys, err
		}
		if len(page.Elems) != 2 {
			return keys, fmt.Errorf("SCAN of %s: unexpected reply", from.addr)
		}
		for _, key := range page.Elems[1].Elems {
			if !open[Slot(key.Str)] {
				continue
			}
			moved, err := moveKey(ctx, own, to, string(key.Str))
			if err != nil {
				return keys, err
			}
			if moved {
				keys++
			}
		}
		if cursor = page.Elems[0].Text(); cursor == "0" {
			return keys, nil
		}
	}
}

// moveKey tries again, since a server that is busy with another key may be silent for long.
func moveKey(ctx context.Context, from, to *server, key string) (moved bool, err error) {
	for range tries {
		if moved, err = migrate(ctx, from, to, key); err == nil {
			break
		}
	}
	return moved, err
}
