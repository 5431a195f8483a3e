package cause

import (
	"strings"
	"testing"

	"slowpath/internal/recording"
)

func TestSlowCommand(t *testing.T) {
	checkLoop(t, "slow-command", []loopWant{
		{"absent", newLoopCase().busy(), 0, 0},
		{"T1 by SLOWLOG", newLoopCase().busy().logged("KEYS", 2, 10), 0.95, 0},
		{"T1 by commandstats", newLoopCase().busy().counted("smembers", 1, 60_000), 0.95, 0},
		{"T1 one long among many short", newLoopCase().busy().counted("smembers", 1000, 65_000).info("cmdstat_get.calls", 0, 10), 0, 0},
		{"T0 by SLOWLOG", newLoopCase().logged("KEYS", 2, 10), 0.8, 0.9},
		{"T0 by commandstats", newLoopCase().counted("smembers", 1, 60_000), 0.7, 0.8},
		{"a throttled server", newLoopCase().hosted(recording.KindThrottled, "").logged("LRANGE", 4, 40), 0, 0},
		{"constant time", newLoopCase().busy().logged("GET", 2, 10), 0, 0},
		{"many arguments", newLoopCase().busy().logged("DEL", 100_000, 1e6), 0.95, 0},
		{"inside of a script", newLoopCase().busy().logged("EVAL", 3, 40).logged("KEYS", 2, 10), 0, 0},
		{"the only command of a transaction", newLoopCase().busy().logged("KEYS", 2, 10).counted("exec", 1, 61_000), 0.95, 0},
	})
}

func TestSlowCommandNamesClientAndRemedy(t *testing.T) {
	d := newLoopCase().busy().logged("KEYS", 2, 10).clients(`{"id":4,"addr":"` + loopClient + `","cmd":"keys","lib_name":"jedis","lib_ver":"5.1.0"}`).diagnose()
	if fix := d.Findings[0].Fix[0]; !strings.Contains(fix, "SCAN") || !strings.Contains(fix, loopClient+" (jedis 5.1.0)") {
		t.Errorf("fix: %s", fix)
	}
}

// Where the host was not watched, a server that is throttled or frozen looks as if its commands were slow.
func TestSlowCommandOnAStalledServer(t *testing.T) {
	checkLoop(t, "slow-command", []loopWant{
		{"commands of constant time are as long", newLoopCase().logged("LRANGE", 4, 40).logged("GET", 2, 10), 0.3, 0.45},
		{"less CPU time than the commands lasted", newLoopCase().logged("LRANGE", 4, 40).info("used_cpu_user_main_thread", 1, 0.01).info("used_cpu_sys_main_thread", 1, 0.001), 0.3, 0.45},
	})
}
