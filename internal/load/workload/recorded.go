package workload

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/wire/cluster"
)

// several are the commands whose arguments are all keys.
var several = setOf("MGET DEL UNLINK EXISTS TOUCH MSET")

// recordedReader makes a replay of a recording.
type recordedReader struct {
	*Replay
	rng    rng
	keys   drawer
	style  style
	values values
	madeUp int
}

// ReadRecording makes a replay of the calls of a recording, from the tap or a load. A recording has names and sizes of
// commands and no arguments: keys are invented, from the hash of the key where there is one, with values that make the
// request as long as it was. Only the commands of Named can be made. Notes says so, and that a recording has the slow
// calls and a sample of the others.
func ReadRecording(rec *recording.Recording, o ReplayOptions) (*Replay, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	r := recordedReader{
		Replay: newReplay(o), rng: newRNG(o.Seed), keys: newDrawer(o.Keys),
		values: newValues(Sizes{low: 0, high: MaxValueBytes}, Content{}, o.Seed),
	}
	var calls []recording.Call
	manyKeys := 1
	for _, c := range rec.Calls {
		if c.Source == recording.SourceTap || c.Source == recording.SourceLoad {
			calls = append(calls, c)
			if several[c.Op] && c.ArgCount > 2 {
				manyKeys = max(manyKeys, c.ArgCount)
			}
		}
	}
	r.style = styleFor(manyKeys, manyKeys)
	slices.SortStableFunc(calls, func(a, b recording.Call) int {
		return int(min(max(a.IntendedNs-b.IntendedNs, -1),
			1))
	})
	for _, c := range calls {
		if err := r.call(c, time.Duration(c.IntendedNs-calls[0].IntendedNs)); err != nil {
			return nil, err
		}
	}
	replay, err := r.finish("recording")
	if err == nil {
		replay.Notes = append(replay.Notes,
			fmt.Sprintf("a recording has no arguments: the keys of %d of %d requests are drawn from %d, the others "+
				"are made of hashes; values are made up in the recorded sizes", r.madeUp, replay.Requests(), r.keys.n),
			"a recording has the slow calls and a sample of the others, not all: the rate is not that of the clients")
		if r.unknownClients > 0 {
			replay.Notes = append(replay.Notes, fmt.Sprintf("a recorded load does not tell on which connection a "+
				"call was: requests that are spread over all: %d", r.unknownClients))
		}
	}
	return replay, err
}

// call adds a call, if a command of its name can be made.
func (r *recordedReader) call(c recording.Call, due time.Duration) error {
	parts, known := named[strings.ToLower(c.Op)]
	if !known || strings.Contains(parts[0].template, ";") || strings.HasPrefix(c.Op, "EVAL") {
		r.skip(c.Op, "it cannot be made from its name and size")
		return nil
	}
	template, err := parseRequest(parts[0].template, Options{KeyPrefix: r.options.KeyPrefix})
	if err != nil {
		return err
	}
	args := slices.Clone(template.commands[0])
	if several[c.Op] {
		args = repeated(args, c.ArgCount, commands[c.Op].step)
	}
	key := r.key(c)
	client := c.Client + " " + c.Conn
	if c.Source == recording.SourceLoad { // its rows do not have the connection
		client = ""
	}
	encoded := r.encode(args, key, 0)
	if missing := int(min(c.RequestBytes, r.options.MaxBytes, MaxValueBytes)) - len(encoded); missing > 0 {
		encoded = r.encode(args, key, r.valueBytes(args, missing))
	}
	q := Request{Replies: 1, Slot: -1, Key: -1}
	if len(template.keys[0]) > 0 {
		q.Slot, q.Key = int16(cluster.Slot(r.text(args[template.keys[0][0]], key, 0))), int64(key)
	}
	return r.put(c.Op, client, due, encoded, q)
}

// repeated gives a command of several keys its number of arguments.
func repeated(args []argument, count, step int) []argument {
	out := args[:1:1]
	for len(out)+step <= min(max(count, 1+step), maxKeysPerRequest) {
		out = append(out, args[1:1+step]...)
	}
	return out
}

// key comes from the recorded hash, or is drawn.
func (r *recordedReader) key(c recording.Call) uint64 {
	if c.KeyHash == "" {
		r.madeUp++
		var next uint64
		return r.keys.draw(&r.rng, &next, 1)
	}
	h := fnv.New64a()
	h.Write([]byte(c.KeyHash))
	return r.keys.keys.Low + h.Sum64()%r.keys.n
}

// valueBytes divides bytes over the values of a request. A longer value also has more digits of its length before it.
func (r *recordedReader) valueBytes(args []argument, missing int) int {
	n := 0
	for _, a := range args {
		n += a.count(valuePart)
	}
	if n == 0 {
		return 0
	}
	size := missing / n
	return max(size-(decimalLen(uint64(size))-1), 0)
}

func (r *recordedReader) encode(args []argument, key uint64, valueBytes int) []byte {
	words := make([]string, len(args))
	for i, a := range args {
		if i > 1 && a.count(keyPart) > 0 {
			key = r.style.neighbour(r.keys.keys, key)
		}
		words[i] = string(r.text(a, key, valueBytes))
	}
	return encode(nil, words)
}

func (r *recordedReader) text(a argument, key uint64, valueBytes int) []byte {
	var out []byte
	for _, p := range a {
		switch p.kind {
		case literalPart:
			out = append(out, p.text...)
		case randPart:
			out = strconv.AppendUint(out, p.low+r.rng.below(p.high-p.low+1), 10)
		case uniquePart:
			out = strconv.AppendUint(out, uint64(len(r.entries)), 10)
		case duePart:
			out = appendDue(out, 0)
		case valuePart:
			out = r.values.append(out, key, valueBytes)
		default:
			out = r.style.appendNumber(out, key, p.kind, true)
		}
	}
	return out
}
