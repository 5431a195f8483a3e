package cause_test

import (
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

func TestSlowCommand(t *testing.T) {
	checkLoop(t, "slow-command", []loopWant{
		{"absent", newLoopCase().busy(), false, false},
		{"T1 by SLOWLOG", newLoopCase().busy().logged("KEYS", 2, 10), true, false},
		{"T1 by commandstats", newLoopCase().busy().counted("smembers", 1, 60_000), true, false},
		{"T1 one long among many short", newLoopCase().busy().counted("smembers", 1000,
			65_000).info("cmdstat_get.calls", 0, 10), false, false},
		{"T0 by SLOWLOG", newLoopCase().logged("KEYS", 2, 10), true, false},
		{"T0 by commandstats", newLoopCase().counted("smembers", 1, 60_000), true, false},
		{"a throttled server", newLoopCase().hosted(recording.KindThrottled, "").logged("LRANGE", 4, 40), false, false},
		{"constant time", newLoopCase().busy().logged("GET", 2, 10), false, false},
		{"many arguments", newLoopCase().busy().logged("BITFIELD", 8002, 1e5), true, false},
		{"many keys", newLoopCase().busy().logged("DEL", 100_000, 1e6), false, false},
		{
			"many keys, by the kernel", newLoopCase().worked(recording.ActivityDetail{Op: "MGET", Args: 30_001}),
			false, false,
		},
		{"inside of a script", newLoopCase().busy().logged("EVAL", 3, 40).logged("KEYS", 2, 10), false, false},
		{
			"the only command of a transaction", newLoopCase().busy().logged("KEYS", 2, 10).counted("exec", 1, 61_000),
			true, false,
		},
	})
}

// The time of page copies in a command while a child saves is not the command's own.
func TestSlowCommandWithoutCopies(t *testing.T) {
	// Faults of the main thread in each second, with a child or without; a fault takes 3 µs where it was not measured.
	faulting := func(with, without float64, child bool) loopCase {
		r := newLoopCase().busy().logged("BITFIELD", 8002, 1e5)
		faults, run := 0.0, 0.0
		for s := range int64(11) {
			lives := child && s >= 2 && s < 9
			for name, v := range map[string]float64{"main.minflt": faults, "main.run_ns": run} {
				r.Sample(recording.Sample{
					TimeNs: s * 1e9, Source: recording.SourceHost, Subject: loopNode, Name: name,
					Value: v,
				})
			}
			saves := 0.0
			if lives {
				saves = 1
			}
			r.Sample(recording.Sample{
				TimeNs: s*1e9 + 50e6, Source: recording.SourceServer, Subject: loopNode,
				Name: "rdb_bgsave_in_progress", Value: saves,
			})
			run += 0.1e9
			if lives {
				faults += with
			} else {
				faults += without
			}
		}
		return r
	}
	for _, tt := range []struct {
		name         string
		rec          loopCase
		first, other string
		most         float64 // share of slow-command
	}{
		{"copies are most of it", faulting(25_000, 100, true), "cow-faults-after-fork", "slow-command", 0.45},
		{"nearly nothing but copies", faulting(33_000, 100, true), "cow-faults-after-fork", "", 0.1},
		{"a child and few copies", faulting(900, 100, true), "slow-command", "", 1},
		{"faults with a child and without", faulting(25_000, 20_000, true), "slow-command", "", 1},
		{"no child", faulting(25_000, 25_000, false), "slow-command", "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.rec.diagnose()
			if len(d.Findings) == 0 || d.Findings[0].Cause != tt.first {
				t.Fatalf("findings %v, want %s first", names(d), tt.first)
			}
			others, against := "", ""
			for _, f := range d.Findings {
				if f.Cause == "slow-command" && f.ExcessShare > tt.most {
					t.Errorf("slow-command has %.2f of the excess, want at most %.2f", f.ExcessShare, tt.most)
				}
				if f.Cause != tt.first {
					others, against = others+f.Cause, against+texts(f.Against)
				}
			}
			if others != tt.other {
				t.Errorf("findings %v, want %q beside %s", names(d), tt.other, tt.first)
			}
			if tt.other != "" {
				holds(t, "against", against, "page copies")
			}
		})
	}
}

func TestSlowCommandNamesClientAndRemedy(t *testing.T) {
	d := newLoopCase().busy().logged("KEYS", 2, 10).clients(`{"id":4,"addr":"` + loopClient +
		`","cmd":"keys","lib_name":"jedis","lib_ver":"5.1.0"}`).diagnose()
	if fix := d.Findings[0].Fix[0]; !strings.Contains(fix, "SCAN") || !strings.Contains(fix,
		loopClient+" (jedis 5.1.0)") {
		t.Errorf("fix: %s", fix)
	}
}

// TestCommandDoesNotWaitForItself: of the slow calls that waited for a command, those that are that command do not
// count.
func TestCommandDoesNotWaitForItself(t *testing.T) {
	d := newLoopCase().logged("KEYS", 2, 10).diagnose()
	commands := 0
	for _, p := range d.Populations {
		if p.Name == account.OfSlowlog {
			commands = p.SlowCalls
		}
	}
	f := d.Findings[0]
	waited := fmt.Sprintf("%d of %d slow calls waited for KEYS", f.SlowCalls-commands, f.Of)
	holds(t, "evidence", texts(f.Evidence), waited)
	holds(t, "evidence", texts(f.Evidence), fmt.Sprintf("; %d more did that work themselves", commands))
}

// Where the host was not watched, the commands of a throttled or frozen server look slow.
func TestSlowCommandOnAStalledServer(t *testing.T) {
	checkLoop(t, "slow-command", []loopWant{
		{
			"commands of constant time are as long", newLoopCase().logged("LRANGE", 4, 40).logged("GET", 2, 10),
			true, true,
		},
		{"all commands lasted longer than the CPU time", newLoopCase().logged("LRANGE", 4, 40).counted("hget", 10_000,
			2_000_000).info("used_cpu_user_main_thread", 1, 0.7).info("used_cpu_sys_main_thread", 1, 0.1), true, true},
		{"as much CPU time as they lasted", newLoopCase().logged("LRANGE", 4, 40).counted("hget", 10_000,
			2_000_000).info("used_cpu_user_main_thread", 1, 1.7).info("used_cpu_sys_main_thread", 1, 0.3), true, false},
		{"a script and what it calls", newLoopCase().logged("LRANGE", 4, 40).counted("hget", 10_000,
			900_000).counted("eval", 10_000, 1_000_000).info("used_cpu_user_main_thread", 1,
			0.9).info("used_cpu_sys_main_thread", 1, 0.2), true, false},
		{"less CPU time than the commands lasted", newLoopCase().logged("LRANGE", 4,
			40).info("used_cpu_user_main_thread", 1, 0.01).info("used_cpu_sys_main_thread", 1, 0.001), true, true},
	})
}
