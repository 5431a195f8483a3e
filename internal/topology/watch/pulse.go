package watch

import (
	"hash/maphash"
	"strconv"
	"strings"

	"slowpath/internal/wire/resp"
)

// pulse is a command whose reply tells that the map has changed.
type pulse int

const (
	bySlots pulse = iota // CLUSTER SLOTS: who serves what
	byNodes              // CLUSTER NODES: all there is
)

var pulses = [...]struct {
	args []string
	stat string // its name in INFO commandstats since Redis 7.0
}{
	bySlots: {[]string{"CLUSTER", "SLOTS"}, "cluster|slots"},
	byNodes: {[]string{"CLUSTER", "NODES"}, "cluster|nodes"},
}

func (p pulse) String() string { return strings.Join(pulses[p].args, " ") }

var seed = maphash.MakeSeed()

// fingerprint is a hash of the map in a reply. It is compared with that of the same command to the same node only:
// nodes list each other in their own order.
func (p pulse) fingerprint(v resp.Value) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	if p == byNodes {
		hashNodes(&h, v.Text())
	} else {
		hashValue(&h, v)
	}
	return h.Sum64()
}

// hashNodes leaves out when nodes were pinged last (fields 5 and 6), which changes all the time.
func hashNodes(h *maphash.Hash, text string) {
	for line := range strings.Lines(text) {
		rest := line
		for field := 1; rest != ""; field++ {
			var word string
			word, rest, _ = strings.Cut(rest, " ")
			if field == 5 || field == 6 {
				continue
			}
			h.WriteString(word)
			h.WriteByte(' ')
		}
	}
}

func hashValue(h *maphash.Hash, v resp.Value) {
	h.WriteByte(byte(v.Kind))
	h.Write(v.Str)
	var number [20]byte
	h.Write(strconv.AppendInt(number[:0], v.Int, 10))
	h.Write(strconv.AppendInt(number[:0], int64(len(v.Elems)), 10))
	h.WriteByte(' ')
	for _, e := range v.Elems {
		hashValue(h, e)
	}
}
