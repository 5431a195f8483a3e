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
	KeyPrefix string // between Prefix and the keys of the log
	KeepKeys  bool   // send the keys as they are in the log, without any prefix: it writes to the data of users
	Dangerous bool   // also send commands that are ErrDangerous
	Cluster   bool   // leave out requests with keys in several slots
	MaxBytes  int64  // of encoded requests in memory; 0: 1 GiB
	Keys      Keys   // of a recording without keys: the range from which they are drawn
	Seed      uint64 // of drawn keys and values
}

const defaultReplayBytes = 1 << 30

// Skip is a command of the log that is not replayed, and why.
type Skip struct {
	Command string
	Why     string
	Count   int64
}

// Replay is a log of commands that can be sent again. It is not changed after it was read, so that many streams can use
// it.
type Replay struct {
	Ops     []Op          // Ratio is the number of requests
	Skipped []Skip        // the most frequent first
	Notes   []string      // sentences: what differs from the log
	Length  time.Duration // from the first request to the last

	entries        []entry
	bytes          []byte
	prefix         string
	options        ReplayOptions
	ops            map[string]uint16
	clients        map[string]uint32
	unknownClients int // requests of unknown clients
	skips          map[[2]string]int64
	scripts        []uint32 // the entries that run one, in order
}

// entry is a request of the log.
type entry struct {
	due    time.Duration // after the first
	start  int           // in Replay.bytes
	size   uint32        // MaxBytes bounds it
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

// check refuses invalid options.
func (o ReplayOptions) check() error {
	if err := checkPrefix(o.KeyPrefix); err != nil {
		return err
	}
	return o.Keys.check()
}

// Requests is the number of requests.
func (r *Replay) Requests() int { return len(r.entries) }

// Clients is the number of clients of the log. Each call of a recorded load counts as one, since its client is not
// known.
func (r *Replay) Clients() int { return min(len(r.clients)+r.unknownClients, len(r.entries)) }

// skip counts a command that is not replayed. Unknown names count together.
func (r *Replay) skip(command, why string) {
	if name, _, _ := strings.Cut(command, " "); commands[name].first == 0 && !dangerous[name] && !stateful[name] &&
		!subcommanded[name] {
		if _, known := commands[name]; !known {
			command = "others"
		}
	}
	if sub := strings.Fields(command); len(sub) > 1 { // without the subcommand, which may be any text
		command = sub[0]
	}
	r.skips[[2]string{command, why}]++
}

// put adds a request of one or more encoded commands. The client "" is unknown.
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
	r.entries = append(r.entries, entry{
		due: r.Length, start: len(r.bytes), size: uint32(len(encoded)), client: id, Request: q,
	})
	r.bytes = append(r.bytes, encoded...)
	return nil
}

// client gives the number of a client, a new one for each request of an unknown client.
func (r *Replay) client(name string) uint32 {
	if name == "" {
		r.unknownClients++
		return uint32(len(r.clients) + r.unknownClients - 1)
	}
	id, seen := r.clients[name]
	if !seen {
		id = uint32(len(r.clients) + r.unknownClients)
		r.clients[name] = id
	}
	return id
}

// errSlots: the keys of a command are on several nodes of a cluster.
var errSlots = errors.New("its keys are in several slots, which a cluster refuses")

// rewrite adds the prefix to the keys of a command, and gives its slot, or says why the command is not sent.
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

// RunsScripts: the log has scripts or functions, which can change and remove every key.
func (r *Replay) RunsScripts() bool { return len(r.scripts) > 0 }

// LeaveOutScripts leaves the requests out that run a script or a function, a transaction as a whole. The error is
// ErrUsage if nothing else is in the log. No stream may exist yet.
func (r *Replay) LeaveOutScripts() error {
	for i := range r.Ops {
		r.Ops[i].Ratio = 0
	}
	kept, left := r.entries[:0], r.scripts
	for i, e := range r.entries {
		if len(left) > 0 && left[0] == uint32(i) {
			left = left[1:]
			r.skip(r.Ops[e.Op].Name, "a script can change and remove every key: it is sent with --dangerous, or to a "+
				"server without keys")
			continue
		}
		r.Ops[e.Op].Ratio++
		r.Length, kept = e.due, append(kept, e)
	}
	r.entries, r.scripts = kept, nil
	_, err := r.finish("log")
	return err
}

// finish sorts the skipped commands, and refuses a log without requests.
func (r *Replay) finish(what string) (*Replay, error) {
	r.Skipped = nil
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

// maxOps bounds the ops, since a load has histograms of each.
const maxOps = 50

// gatherOps sorts the ops by their number, and joins the rarest to one.
func (r *Replay) gatherOps() {
	order := make([]uint16, len(r.Ops))
	for i := range order {
		order[i] = uint16(i)
	}
	slices.SortStableFunc(order, func(a, b uint16) int { return cmp.Compare(r.Ops[b].Ratio, r.Ops[a].Ratio) })
	place, ops := make([]uint16, len(order)), make([]Op, 0, min(len(order), maxOps))
	for rank, op := range order {
		if r.Ops[op].Ratio == 0 {
			break
		}
		if rank < maxOps {
			place[op], ops = uint16(len(ops)), append(ops, r.Ops[op])
			continue
		}
		place[op] = maxOps - 1
		ops[maxOps-1] = Op{Name: "others", Ratio: ops[maxOps-1].Ratio + r.Ops[op].Ratio}
	}
	for i := range r.entries {
		r.entries[i].Op = place[r.entries[i].Op]
	}
	r.Ops = ops
}

// encode appends a command.
func encode(dst []byte, args []string) []byte { return resp.AppendCommand(dst, args...) }
