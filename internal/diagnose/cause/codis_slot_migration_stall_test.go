package cause_test

import (
	"strings"
	"testing"

	"slowpath/internal/recording"
)

// sent says how many calls the process of worked has sent.
func (r loopCase) sent(calls int64) loopCase {
	r.Event(recording.Event{
		TimeNs: 9e9, Source: recording.SourceTap, Subject: loopNode, Kind: recording.KindClose,
		Detail: recording.Detail(recording.ConnDetail{
			Client: loopClient, PID: 9, Comm: "cron", Side: recording.Client, Calls: calls,
		}),
	})
	return r
}

// inCluster says that the server is a node of a cluster.
func (r loopCase) inCluster() loopCase { return r.info("cluster_enabled", 1, 0) }

func lastCommand(cmd string) string { return `{"addr":"` + loopClient + `","cmd":"` + cmd + `"}` }

func TestCodisSlotMigrationStall(t *testing.T) {
	migrate := recording.ActivityDetail{Op: "MIGRATE", Args: 7}
	proxied := func() loopCase { return newLoopCase().logged("MIGRATE", 7, 30).clients(lastCommand("get")) }
	checkLoop(t, "codis-slot-migration-stall", []loopWant{
		{"T0 Codis sends a key", newLoopCase().logged("SLOTSMGRTTAGONE", 5, 30), true, false},
		{"T0 Codis receives a key", newLoopCase().logged("SLOTSRESTORE", 4, 30), true, false},
		{"T0 by commandstats", newLoopCase().counted("slotsmgrttagslot", 1, 60e3), true, false},
		{"T1 Codis", newLoopCase().busy().logged("SLOTSMGRTTAGSLOT", 5, 30), true, false},
		{"T2 Codis", newLoopCase().worked(recording.ActivityDetail{Op: "SLOTSMGRTTAGONE", Args: 5}), true, false},
		{"T0 MIGRATE on a connection that sends GET", proxied(), true, false},
		{"T2 MIGRATE of a process that sends other calls", newLoopCase().worked(migrate).sent(900), true, false},
		{
			"T2 of one that sends little else",
			newLoopCase().worked(migrate).sent(900).info("cmdstat_migrate.calls", 1, 100), false, false,
		},
		{"MIGRATE and SCAN alone", newLoopCase().logged("MIGRATE", 7, 30).clients(lastCommand("scan")), false, false},
		{"MIGRATE of unknown senders", newLoopCase().logged("MIGRATE", 7, 30), false, false},
		{"in a cluster", proxied().inCluster(), false, false},
		{"T2 in a cluster", newLoopCase().worked(migrate).sent(900).inCluster(), false, false},
		{"RESTORE, and nobody is seen to MIGRATE", newLoopCase().logged("RESTORE", 4, 30), false, false},
		{
			"a call of a user, in a slot that migrates", newLoopCase().logged("SLOTSMGRT-EXEC-WRAPPER", 4, 30), false,
			false,
		},
		{"another slow command", newLoopCase().busy().logged("SORT", 4, 30), false, false},
	})
}

// TestOneOfTheMigrations: what one of the two causes of MIGRATE claims, the other does not.
func TestOneOfTheMigrations(t *testing.T) {
	for want, r := range map[string]loopCase{
		"codis-slot-migration-stall": newLoopCase().logged("MIGRATE", 7, 30).logged("RESTORE", 4, 30).
			clients(lastCommand("hget")),
		"migrate-big-key-blocks": newLoopCase().logged("MIGRATE", 7, 30).logged("RESTORE", 4, 30),
	} {
		if got := names(r.diagnose()); len(got) != 1 || !strings.HasPrefix(got[0], want+" ") {
			t.Errorf("%q, want %s", got, want)
		}
	}
}
