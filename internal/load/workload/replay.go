package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"slowpath/internal/wire/cluster"
	"slowpath/internal/wire/resp"
)

// ReplayOptions say how a log is replayed.
type ReplayOptions struct {
	KeyPrefix string // comes after Prefix, before the keys of the log
	KeepKeys  bool   // send the keys as they are in the log, without any prefix: it writes to the data of users
	Dangerous bool   // send what ErrDangerous is said of, too
	Cluster   bool   // leave out what a cluster refuses: keys of one request in several slots
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

// Replay is a log of commands that can be sent again. It is not changed once it is read, so that many streams can play
// it.
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
	alone   int // requests of which the client is not known
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
	return &Replay{
		options: o, prefix: Prefix + o.KeyPrefix, ops: map[string]uint16{}, clients: map[string]uint32{},
		skips: map[[2]string]int64{},
	}
}

// check refuses what no log can be replayed with.
func (o ReplayOptions) check() error {
	if err := checkPrefix(o.KeyPrefix); err != nil {
		return err
	}
	return o.Keys.check()
}

// Requests is how many there are.
func (r *Replay) Requests() int { return len(r.entries) }

// Clients is how many clients of the log the requests are of. Each call of a load that was recorded counts as one,
// since it is not known.
func (r *Replay) Clients() int { return min(len(r.clients)+r.alone, len(r.entries)) }

// skip counts a command that is not replayed. Names that are not known are counted as one.
func (r *Replay) skip(command, why string) {
	if name, _, _ := strings.Cut(command, " "); commands[name].first == 0 && !dangerous[name] && !stateful[name] &&
		!subcommanded[name] {
		if _, known := commands[name]; !known {
			command = "others"
		}
	}
	if sub := strings.Fields(command); len(sub) > 1 { // subcommands are anything that a log has
		command = sub[0]
	}
	r.skips[[2]string{command, why}]++
}

// put adds a request of one or more commands, which are encoded already. A client "" is not known.
func (r *Replay) put(name, client string, due time.Duration, encoded []byte, q Request) error {
	if int64(len(r.bytes)+len(encoded)) > r.options.MaxBytes {
		return usage("the log has more than %d MB of requests; cut it into parts", r.options.MaxBytes>>20)
	}
	id := r.client(client)
	op, seen := r.ops[name]
	if !seen {
		if len(r.Ops) == math.MaxUint16 {
			return usage("the log has more than %d different commands", math.MaxUint16)
		}
		op = uint16(len(r.Ops))
		r.ops[name], r.Ops = op, append(r.Ops, Op{
			Name: name, Reads: missReads[name], ReadOnly: readOnly[name],
			Blocks: blocking[name],
		})
	}
	r.Ops[op].Ratio++
	q.Op, r.Length = op, max(r.Length, due)
	r.entries = append(r.entries, entry{due: r.Length, start: len(r.bytes), client: id, Request: q})
	r.bytes = append(r.bytes, encoded...)
	return nil
}

// client gives the number of a client, a new one to each request of which it is not known.
func (r *Replay) client(name string) uint32 {
	if name == "" {
		r.alone++
		return uint32(len(r.clients) + r.alone - 1)
	}
	id, seen := r.clients[name]
	if !seen {
		id = uint32(len(r.clients) + r.alone)
		r.clients[name] = id
	}
	return id
}

// errSlots is that of a command whose keys no node of a cluster has all of.
var errSlots = errors.New("its keys are in several slots, which a cluster refuses")

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
		if name == "PUBLISH" {
			continue
		}
		of := int16(cluster.Slot([]byte(out[at])))
		if slot >= 0 && of != slot && r.options.Cluster {
			return nil, -1, errSlots
		}
		if slot < 0 {
			slot = of
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
	r.gatherOps()
	if len(r.entries) == 0 {
		if len(r.Skipped) > 0 {
			return nil, usage("%s: nothing to replay: all was left out, most of it %s (%s)", what, r.Skipped[0].Command,
				r.Skipped[0].Why)
		}
		return nil, usage("%s: nothing to replay", what)
	}
	return r, nil
}

// mostOps are told apart, since a load keeps histograms of each.
const mostOps = 50

// gatherOps orders the ops by their number, and makes one of those that are rare.
func (r *Replay) gatherOps() {
	order := make([]uint16, len(r.Ops))
	for i := range order {
		order[i] = uint16(i)
	}
	slices.SortStableFunc(order, func(a, b uint16) int { return cmp.Compare(r.Ops[b].Ratio, r.Ops[a].Ratio) })
	place, ops := make([]uint16, len(order)), make([]Op, 0, min(len(order), mostOps))
	for rank, op := range order {
		if rank < mostOps {
			place[op], ops = uint16(len(ops)), append(ops, r.Ops[op])
			continue
		}
		place[op] = mostOps - 1
		ops[mostOps-1] = Op{Name: "others", Ratio: ops[mostOps-1].Ratio + r.Ops[op].Ratio}
	}
	for i := range r.entries {
		r.entries[i].Op = place[r.entries[i].Op]
	}
	r.Ops = ops
}

// encode appends a command.
func encode(dst []byte, args []string) []byte { return resp.AppendCommand(dst, args...) }
