package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
)

// Where the keys depend on the arguments, the server is asked about some (COMMAND GETKEYS).
func TestMovableKeysAgreeWithServer(t *testing.T) {
	needs.Long(t)
	c := dial(t, start(t, servers.Redis802))
	for _, line := range []string{
		"EVAL script 2 a b c", "EVALSHA sha 0", "EVAL_RO script 1 a 2", "FCALL f 1 a x", "SINTERCARD 2 a b LIMIT 5",
		"ZUNIONSTORE d 2 a b WEIGHTS 1 2",
		"ZINTERSTORE d 1 a", "ZDIFFSTORE d 2 a b", "ZUNION 2 a b WITHSCORES", "ZDIFF 1 a", "ZINTERCARD 1 a",
		"LMPOP 2 a b LEFT", "ZMPOP 1 a MIN",
		"BLMPOP 0 2 a b LEFT COUNT 3", "BZMPOP 0 1 a MAX", "XREAD COUNT 2 STREAMS a b 0 0",
		"XREADGROUP GROUP streams c STREAMS a >",
		"XREADGROUP GROUP g streams COUNT 2 STREAMS a b > >", "SORT a BY nosort STORE d", "SORT a LIMIT 0 5 GET #",
		"GEORADIUS a 1 2 3 km STORE d", "GEORADIUSBYMEMBER a m 3 km STOREDIST d", "GEORADIUS a 1 2 3 km",
		"MSET a 1 b 2", "BITOP AND d a b", "BLPOP a b 0", "OBJECT ENCODING a", "XINFO STREAM a", "XGROUP CREATE a g $",
		"MEMORY USAGE a", "RENAME a b", "XADD a * f v",
	} {
		args := strings.Fields(line)
		var got, want []string
		for _, at := range keyPositions(args) {
			got = append(got, args[at])
		}
		reply := c.do(append([]string{"COMMAND", "GETKEYS"}, args...)...)
		for _, e := range reply.Elems {
			want = append(want, e.Text())
		}
		if err := reply.Err(); err != nil && !strings.Contains(err.Error(), "no key arguments") {
			t.Fatalf("%s: %v", line, err)
		}
		slices.Sort(got)
		slices.Sort(want)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: keys %v, the server says %v", line, got, want)
		}
	}
}
