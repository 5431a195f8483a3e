package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/wire/resp"
)

// Node is a connection to one server. Pipeline sends commands together and gives a reply for each, which may be an
// error reply.
type Node interface {
	Pipeline(ctx context.Context, commands [][]string) ([]resp.Value, error)
}

// Limits of one round, so that it does not block the server for long: SCAN visits about scanCount keys, some 100 µs.
const (
	scanCount      = 1000
	removePerRound = 500
)

// ErrNotAll: a clean-up left keys. The number of removed keys comes with it.
var ErrNotAll = errors.New("keys of the load remain")

// Patterns are globs for SCAN MATCH which together match every key that the workload may have written. All begin with
// the prefix.
func (w *Workload) Patterns() []string {
	var out []string
	for _, p := range w.patterns() {
		if g := w.keyGlob(p.key); !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// keyGlob has a character for each digit, and the braces of a hash tag, so that it matches no key of another form.
func (w *Workload) keyGlob(key argument) string {
	var b strings.Builder
	for _, p := range key {
		switch p.kind {
		case literalPart:
			b.WriteString(globEscaped(p.text))
		case valuePart, randPart, uniquePart, duePart:
			b.WriteByte('*')
		default:
			for _, c := range w.style.appendNumber(nil, 0, p.kind, true) {
				if c == '0' {
					c = '?'
				}
				b.WriteByte(c)
			}
		}
	}
	return b.String()
}

// CleanupByScan removes the keys that match Patterns from a node, with SCAN. It finds keys with any number, but visits
// all keys of the node. It ends early with the context. It never touches keys that do not begin with the prefix. In a
// cluster it runs for each master.
func (w *Workload) CleanupByScan(ctx context.Context, node Node) (removed int64, err error) {
	r := remover{node: node, prefix: w.options.prefix(), command: "UNLINK"}
	return r.byScan(ctx, w.Patterns())
}

// CleanupPrefix is CleanupByScan of all keys under Prefix + keyPrefix, of any run.
func CleanupPrefix(ctx context.Context, node Node, keyPrefix string) (removed int64, err error) {
	r := remover{node: node, prefix: Prefix + keyPrefix, command: "UNLINK"}
	return r.byScan(ctx, []string{globEscaped(r.prefix) + "*"})
}

// CleanupByKeys removes every key that the workload may have written, by number, for servers and proxies without SCAN.
// Keys with {rand} or {unique} cannot be enumerated: ErrNotAll.
func (w *Workload) CleanupByKeys(ctx context.Context, node Node) (removed int64, err error) {
	r := remover{node: node, prefix: w.options.prefix(), command: "UNLINK"}
	var left []string
	for _, p := range w.patterns() {
		if !p.enumerable() {
			left = append(left, p.text())
			continue
		}
		count := uint64(1)
		if p.numbered() || p.key.count(tagPart) > 0 {
			count = w.keys.n
		}
		for n := range count {
			r.add(w.keyText(p.key, w.options.Keys.Low+n))
			if len(r.round) == removePerRound {
				if err := r.flush(ctx); err != nil {
					return r.removed, err
				}
			}
		}
	}
	if err := r.flush(ctx); err != nil {
		return r.removed, err
	}
	if len(left) > 0 {
		return r.removed, fmt.Errorf("%w: %s are not of a range of numbers; remove them with SCAN", ErrNotAll,
			strings.Join(left, " "))
	}
	return r.removed, r.refusal
}

func (w *Workload) keyText(a argument, number uint64) string {
	var key []byte
	for _, p := range a {
		if p.kind == literalPart {
			key = append(key, p.text...)
		} else {
			key = w.style.appendNumber(key, number, p.kind, true)
		}
	}
	return string(key)
}

// remover removes keys by a command each, since the keys of one command must be in one slot, many in a round.
type remover struct {
	node    Node
	prefix  string
	command string // UNLINK, or DEL where the server does not know it (before Redis 4.0)
	round   []string
	removed int64
	refusal error // the first error reply to a removal
}

func (r *remover) byScan(ctx context.Context, patterns []string) (int64, error) {
	for _, pattern := range patterns {
		if err := r.scan(ctx, pattern); err != nil {
			return r.removed, err
		}
	}
	return r.removed, r.refusal
}

func (r *remover) scan(ctx context.Context, pattern string) error {
	for cursor := "0"; ; {
		replies, err := r.pipeline(ctx, [][]string{{"SCAN", cursor, "MATCH", pattern, "COUNT", fmt.Sprint(scanCount)}})
		if err == nil {
			err = replies[0].Err()
		}
		if err != nil {
			return fmt.Errorf("%w: SCAN for %s: %w", ErrNotAll, pattern, err)
		}
		if len(replies[0].Elems) != 2 {
			return fmt.Errorf("%w: SCAN gave no cursor and keys", ErrNotAll)
		}
		cursor = replies[0].Elems[0].Text()
		for _, key := range replies[0].Elems[1].Elems {
			r.add(string(key.Str))
			if len(r.round) == removePerRound {
				if err := r.flush(ctx); err != nil {
					return err
				}
			}
		}
		if err := r.flush(ctx); err != nil || cursor == "0" {
			return err
		}
	}
}

// add adds a key to the next round, if it has the prefix.
func (r *remover) add(key string) {
	if strings.HasPrefix(key, r.prefix) {
		r.round = append(r.round, key)
	}
}

// flush removes the keys of the round.
func (r *remover) flush(ctx context.Context) error {
	for len(r.round) > 0 {
		commands := make([][]string, len(r.round))
		for i, key := range r.round {
			commands[i] = []string{r.command, key}
		}
		replies, err := r.pipeline(ctx, commands)
		if err != nil {
			return fmt.Errorf("%w: removing: %w", ErrNotAll, err)
		}
		if err := replies[0].Err(); err != nil && r.command == "UNLINK" && strings.Contains(err.Error(),
			"unknown command") {
			r.command = "DEL"
			continue
		}
		r.count(replies)
		r.round = r.round[:0]
	}
	return nil
}

func (r *remover) count(replies []resp.Value) {
	for i, reply := range replies {
		if err := reply.Err(); err != nil && r.refusal == nil {
			r.refusal = fmt.Errorf("%w: %s of %s: %w", ErrNotAll, r.command, r.round[i], err)
		}
		n, _ := reply.Integer() // of an error reply 0
		r.removed += n
	}
}

func (r *remover) pipeline(ctx context.Context, commands [][]string) ([]resp.Value, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	replies, err := r.node.Pipeline(ctx, commands)
	if err == nil && len(replies) != len(commands) {
		err = fmt.Errorf("%d replies to %d commands", len(replies), len(commands))
	}
	return replies, err
}
