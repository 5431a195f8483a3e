package workload

import (
	"fmt"

	"slowpath/internal/cluster"
	"slowpath/internal/resp"
)

// Prefix begins every key that a load writes or reads.
const Prefix = "slowpath:"

// template is an encoded request whose key number is patched in.
type template struct {
	bytes []byte
	keyAt int // offset of the key's digits, -1 without a key
	keys  uint64
}

const keyDigits = 12

// Simple is a workload of one of the named commands get, set and ping, with keys drawn uniformly from a range, and values of one size.
func Simple(command string, keys uint64, valueBytes int) (*Workload, error) {
	key := Prefix + "key:" + "000000000000"
	t := template{keyAt: -1, keys: keys}
	op := Op{Ratio: 1}
	switch command {
	case "get":
		op.Name, op.Reads = "GET", true
		t.bytes = resp.AppendCommand(nil, "GET", key)
		t.keyAt = len(t.bytes) - 2 - keyDigits
	case "set":
		op.Name = "SET"
		t.bytes = resp.AppendCommand(nil, "SET", key, string(make([]byte, valueBytes)))
		t.keyAt = len(resp.AppendCommand(nil, "SET", key)) - 2 - keyDigits
	case "ping":
		op.Name = "PING"
		t.bytes = resp.AppendCommand(nil, "PING")
	default:
		return nil, fmt.Errorf("unknown command %q", command)
	}
	return &Workload{Ops: []Op{op}, templates: []template{t}, ratios: []float64{1}}, nil
}

func (t *template) append(dst []byte, s *Stream, op uint16) ([]byte, Request) {
	at := len(dst)
	dst = append(dst, t.bytes...)
	r := Request{Op: op, Replies: 1, Slot: -1, Key: -1}
	if t.keyAt < 0 {
		return dst, r
	}
	n := s.rng.below(t.keys)
	r.Key = int64(n)
	digits := dst[at+t.keyAt : at+t.keyAt+keyDigits]
	for i := keyDigits - 1; n > 0; i-- {
		digits[i] = byte('0' + n%10)
		n /= 10
	}
	r.Slot = int16(cluster.Slot(dst[at+t.keyAt-len(Prefix+"key:") : at+t.keyAt+keyDigits]))
	return dst, r
}
