package workload

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"slowpath/internal/cluster"
	"slowpath/internal/resp"
)

// ReplayOptions say how a log is replayed.
type ReplayOptions struct {
	KeyPrefix string // comes after Prefix, before the keys of the log
	KeepKeys  bool   // send the keys as they are in the log, without any prefix: it writes to the data of users
	Dangerous bool   // send what ErrDangerous is said of, too
	MaxBytes  int64  // of encoded requests that are held in memory; 0: 1 GiB
	Keys      Keys   // of a recording that has no keys: the range from which they are made up
	Seed      uint64 // of what is made up
}

const defaultReplayBytes = 1 << 30

// Skip is a command of the log that is not replayed, and why.
type Skip struct {
	Command string
	Why     string
	Count   int64
}

// Replay is a log of commands that can be sent again. It is not changed once it is read, so that many streams can play it.
type Replay struct {
	Ops     []Op          // Ratio is the number of requests
	Skipped []Skip        // the most frequent first
	Notes   []string      // what differs from what was logged, in sentences
	Length  time.Duration // from the first request to the last

	entries []entry
	bytes   []byte
	prefix  string
	options ReplayOptions
	ops     map[string]uint16
	clients map[string]uint32
	skips   map[[2]string]int64
}

// entry is a request of the log; its bytes end where those of the next begin.
type entry struct {
	due    time.Duration // after the first
	start  int
	client uint32
	Request
}

func newReplay(o ReplayOptions) *Replay {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultReplayBytes
	}
	return &Replay{options: o, prefix: Prefix + o.KeyPrefix, ops: map[string]uint16{}, clients: map[string]uint32{}, skips: map[[2]string]int64{}}
}

// Requests is how many there are.
func (r *Replay) Requests() int { return len(r.entries) }

// ReplayStream plays the requests of some of the log's clients, in the order of the log. It is not safe for concurrent use.
type ReplayStream struct {
	r            *Replay
	at           int
	index, count uint32
	speed        float64
}

// Stream gives stream number index (from 0) of count. The requests of one client of the log are all in one stream, so that their order is
// kept. A speed of 2 is twice as fast as the log, 1 its own pace; at 0 all is due at once.
func (r *Replay) Stream(index, count int, speed float64) *ReplayStream {
	return &ReplayStream{r: r, index: uint32(index), count: uint32(max(count, 1)), speed: speed}
}

// Next appends the next request to dst and says when it is due after the start of the replay; false when there is none left. It does not
// allocate but to make dst longer.
func (s *ReplayStream) Next(dst []byte) (_ []byte, _ Request, due time.Duration, ok bool) {
	for ; s.at < len(s.r.entries); s.at++ {
		e := &s.r.entries[s.at]
		if e.client%s.count != s.index {
			continue
		}
		end := len(s.r.bytes)
		if s.at++; s.at < len(s.r.entries) {
			end = s.r.entries[s.at].start
		}
		if s.speed > 0 {
			due = time.Duration(min(float64(e.due)/s.speed, math.MaxInt64/2))
		}
		return append(dst, s.r.bytes[e.start:end]...), e.Request, due, true
	}
	return dst, Request{}, 0, false
}

// skip counts a command that is not replayed. Names that are not known are counted as one.
func (r *Replay) skip(command, why string) {
	if name, _, _ := strings.Cut(command, " "); commands[name].first == 0 && !dangerous[name] && !stateful[name] && !subcommanded[name] {
		if _, known := commands[name]; !known {
			command = "others"
		}
	}
	if sub := strings.Fields(command); len(sub) > 1 { // subcommands are anything that a log has
		command = sub[0]
	}
	r.skips[[2]string{command, why}]++
}

// put adds a request of one or more commands, which are encoded already.
func (r *Replay) put(name, client string, due time.Duration, encoded []byte, q Request) error {
	if int64(len(r.bytes)+len(encoded)) > r.options.MaxBytes {
		return usage("the log has more than %d MB of requests; cut it into parts", r.options.MaxBytes>>20)
	}
	id, seen := r.clients[client]
	if !seen {
		id = uint32(len(r.clients))
		r.clients[client] = id
	}
	op, seen := r.ops[name]
	if !seen {
		if len(r.Ops) == math.MaxUint16 {
			return usage("the log has more than %d different commands", math.MaxUint16)
		}
		op = uint16(len(r.Ops))
		r.ops[name], r.Ops = op, append(r.Ops, Op{Name: name, Reads: missReads[name], ReadOnly: readOnly[name], Blocks: blocking[name]})
	}
	r.Ops[op].Ratio++
	q.Op, r.Length = op, max(r.Length, due)
	r.entries = append(r.entries, entry{due: r.Length, start: len(r.bytes), client: id, Request: q})
	r.bytes = append(r.bytes, encoded...)
	return nil
}

// rewrite gives a command with the prefix before its keys, and its slot, or says why it is not sent.
func (r *Replay) rewrite(args []string, database string) (out []string, slot int16, err error) {
	if err := refuse(args, r.options.Dangerous); err != nil {
		return nil, -1, err
	}
	name := strings.ToUpper(args[0])
	_, known := commands[name]
	if !known && !r.options.KeepKeys {
		return nil, -1, fmt.Errorf("%w: it is not known which of its arguments are keys", ErrDangerous)
	}
	positions := keyPositions(args)
	if positions == nil {
		return nil, -1, fmt.Errorf("%w: it cannot be told which of its arguments are keys", ErrDangerous)
	}
	out = slices.Clone(args)
	slot = -1
	for _, at := range positions {
		if !r.options.KeepKeys {
			out[at] = r.prefix + database + out[at]
		}
		if slot < 0 && name != "PUBLISH" {
			slot = int16(cluster.Slot([]byte(out[at])))
		}
	}
	return out, slot, nil
}

// finish orders what was skipped, and refuses a log without requests.
func (r *Replay) finish(what string) (*Replay, error) {
	for key, count := range r.skips {
		r.Skipped = append(r.Skipped, Skip{key[0], key[1], count})
	}
	slices.SortFunc(r.Skipped, func(a, b Skip) int {
		if a.Count != b.Count {
			return int(b.Count - a.Count)
		}
		return strings.Compare(a.Command+a.Why, b.Command+b.Why)
	})
	if len(r.entries) == 0 {
		if len(r.Skipped) > 0 {
			return nil, usage("%s: nothing to replay: all was left out, most of it %s (%s)", what, r.Skipped[0].Command, r.Skipped[0].Why)
		}
		return nil, usage("%s: nothing to replay", what)
	}
	return r, nil
}

// encode appends a command.
func encode(dst []byte, args []string) []byte { return resp.AppendCommand(dst, args...) }
