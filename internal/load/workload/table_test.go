package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/resp"
)

// The table of commands has the key positions that the servers themselves tell, and no command of theirs gets by
// unknown: it is in the table, or refused.
func TestTableAgreesWithServers(t *testing.T) {
	for _, name := range servers.Known() {
		t.Run(string(name), func(t *testing.T) {
			c := dial(t, start(t, name))
			listed := c.do("COMMAND").Elems
			if len(listed) < 180 {
				t.Fatalf("%d commands", len(listed))
			}
			for _, e := range listed {
				checkAgainstServer(t, e)
			}
		})
	}
}

func checkAgainstServer(t *testing.T, e resp.Value) {
	t.Helper()
	name := strings.ToUpper(e.Elems[0].Text())
	at := [3]int64{}
	for i := range at {
		at[i], _ = e.Elems[3+i].Integer()
	}
	if old := at == [3]int64{1, 1, 1} && (name == "TOUCH" || strings.HasSuffix(name, "_RO")); old && len(e.Elems) == 6 {
		return // Redis 5 has these wrong: TOUCH takes several keys, GEORADIUS_RO has no STORE
	}
	if refuse([]string{name}, false) != nil || name == "PUBLISH" || subcommanded[name] {
		return
	}
	if has := func(flag string) bool {
		return slices.ContainsFunc(e.Elems[2].Elems, func(v resp.Value) bool { return v.Text() == flag })
	}; readOnly[name] && has("write") || !readOnly[name] && has("readonly") && commands[name].first > 0 {
		t.Errorf("%s: read-only is %v, the server's flags are %v", name, readOnly[name], e.Elems[2])
	}
	c := commands[name]
	movable := slices.ContainsFunc(e.Elems[2].Elems, func(flag resp.Value) bool { return flag.Text() == "movablekeys" })
	switch {
	case c.keys != nil && !movable:
		t.Errorf("%s: the server has fixed keys %v", name, at)
	case c.keys == nil && (movable || at != [3]int64{int64(c.first), int64(c.last), int64(c.step)}):
		t.Errorf("%s: the server has keys at %v (movable %v), the table %+v", name, at, movable, c)
	}
}

// Where the keys depend on the arguments, the server is asked about some (COMMAND GETKEYS).
func TestMovableKeysAgreeWithServer(t *testing.T) {
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
