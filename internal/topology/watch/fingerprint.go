package watch

import (
	"hash/maphash"
	"strconv"
	"strings"

	"slowpath/internal/wire/resp"
)

// pollCommand is a command whose reply shows that the map has changed.
type pollCommand int

const (
	bySlots pollCommand = iota // CLUSTER SLOTS: the owners of slots and their replicas
	byNodes                    // CLUSTER NODES: the whole map
)

var pollCommands = [...]struct {
	args []string
	stat string // its name in INFO commandstats since Redis 7.0
}{
	bySlots: {[]string{"CLUSTER", "SLOTS"}, "cluster|slots"},
	byNodes: {[]string{"CLUSTER", "NODES"}, "cluster|nodes"},
}

func (p pollCommand) String() string { return strings.Join(pollCommands[p].args, " ") }

var seed = maphash.MakeSeed()

// fingerprint is a hash of the map in a reply. Only replies of one node to one command can be compared, since each node
// lists the others in its own order.
func (p pollCommand) fingerprint(v resp.Value) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	if p == byNodes {
		hashNodes(&h, v.Text())
	} else {
		hashValue(&h, v)
	}
	return h.Sum64()
}

// hashNodes leaves out the ping and pong times (fields 5 and 6), which change all the time.
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
