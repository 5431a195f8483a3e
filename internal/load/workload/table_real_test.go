package workload

import (
	"slices"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/resp"
)

// The table of commands has the key positions that the servers themselves tell, and no command of theirs gets by
// unknown: it is in the table, or refused.
func TestTableAgreesWithServers(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, name := range fleettest.Among(servers.Known()...) {
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
