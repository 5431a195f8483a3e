package profile

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/source/profile/stacks"
)

// jedisDump is of Jedis 7.5.3 on OpenJDK 17, with a thread that waits in the pool.
const jedisDump = `Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1deb12u1 mixed mode):

"Thread-3" #17 prio=5 os_prio=0 cpu=7252.01ms elapsed=289.46s tid=0x00007ff19c1dffd0 nid=0x7564 waiting on condition  [0x00007ff12affe000]
   java.lang.Thread.State: WAITING (parking)
	at jdk.internal.misc.Unsafe.park(java.base@17.0.15/Native Method)
	- parking to wait for  <0x00000000fc004570> (a java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject)
	at java.util.concurrent.locks.LockSupport.park(java.base@17.0.15/LockSupport.java:341)
	at org.apache.commons.pool2.impl.LinkedBlockingDeque.takeFirst(LinkedBlockingDeque.java:1296)
	at org.apache.commons.pool2.impl.GenericObjectPool.borrowObject(GenericObjectPool.java:306)
	at redis.clients.jedis.util.Pool.getResource(Pool.java:38)
	at java.base/java.lang.Thread.run(Thread.java:840)

"GC Thread#0" os_prio=0 cpu=120.01ms elapsed=290.18s tid=0x00007ff19c04d8f0 nid=0x7545 runnable
`

func TestParseDump(t *testing.T) {
	p := parseDump(jedisDump + jedisDump)
	if len(p.Stacks) != 1 || p.Total(0) != 2 || p.Stacks[0].Frames[0] != "java.lang.Thread.run" {
		t.Fatalf("%+v", p)
	}
	if m, ok := stacks.Builtin().Of(p.Stacks[0].Frames); !ok || m.State != stacks.PoolWait || m.Library != "Jedis" {
		t.Errorf("%+v", m)
	}
}

func FuzzParseDump(f *testing.F) {
	f.Add(jedisDump)
	f.Add("\tat a.b(")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range parseDump(text).Stacks {
			if len(s.Frames) == 0 || len(s.Frames) > maxDumpFrames || s.Values[0] < 1 {
				t.Errorf("%+v", s)
			}
		}
	})
}

func TestProcessesThatAreNoJVM(t *testing.T) {
	for pid, want := range map[int]string{os.Getpid(): "and not java", 1 << 30: "no process"} {
		if _, err := Open(t.Context(), Options{Targets: []Target{one(t, strconv.Itoa(pid))}}); !errors.Is(err,
			ErrTarget) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", pid, err)
		}
	}
}
