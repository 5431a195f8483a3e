package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"slowpath/internal/wire/resp"
)

// Setup is that of a Workload: a log needs none.
func (r *Replay) Setup() [][]string { return nil }

// Writes: the replay may leave keys under its prefix.
func (r *Replay) Writes() bool {
	if r.options.KeepKeys {
		return false
	}
	for _, op := range r.Ops {
		if !op.ReadOnly {
			return true
		}
	}
	return false
}

// CleanupByScan removes all keys under the prefix of the replay from a node, as CleanupPrefix does. With
// KeepKeys the keys are those of users: none is removed.
func (r *Replay) CleanupByScan(ctx context.Context, node Node) (removed int64, err error) {
	if r.options.KeepKeys {
		return 0, nil
	}
	return CleanupPrefix(ctx, node, r.options.KeyPrefix)
}

// CleanupByKeys removes the keys of the requests of the log, one by one, for servers and proxies without SCAN.
func (r *Replay) CleanupByKeys(ctx context.Context, node Node) (removed int64, err error) {
	if r.options.KeepKeys {
		return 0, nil
	}
	m := remover{node: node, prefix: r.prefix, command: "UNLINK"}
	seen := map[string]bool{}
	// as long as a line can be
	own := resp.Limits{MaxBulkBytes: maxLineBytes, MaxReplyBytes: 128 * maxLineBytes, MaxElements: maxLineBytes}
	commands := resp.NewReader(bytes.NewReader(r.bytes), own)
	for {
		v, err := commands.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return m.removed, fmt.Errorf("%w: the log: %w", ErrNotAll, err)
		}
		args := make([]string, len(v.Elems))
		for i := range v.Elems {
			args[i] = v.Elems[i].Text()
		}
		for _, at := range keyPositions(args) {
			if key := args[at]; !seen[key] {
				seen[key] = true
				m.add(key)
			}
		}
		if len(m.round) >= removePerRound {
			if err := m.flush(ctx); err != nil {
				return m.removed, err
			}
		}
	}
	if err := m.flush(ctx); err != nil {
		return m.removed, err
	}
	return m.removed, m.refusal
}
