package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestIOThreadsOversubscribed(t *testing.T) {
	waiting := func(threads string) edge {
		return newEdge("redis 7.0.15").kept(20*edgeMs, 0, 0).call("kept", 1, edgeMs/10).fresh(edgeMs/10,
			20*edgeMs).config(map[string]string{"io-threads": threads})
	}
	threads := func(e edge, run, wait float64) edge {
		return e.host(map[string]float64{
			"thread.io_thd_1.run_ns": run * 5e9, "thread.io_thd_1.delay_ns": wait * 5e9,
			"thread.io_thd_2.run_ns": run * 5e9, "thread.io_thd_2.delay_ns": wait * 5e9,
		})
	}
	neighbour := func(e edge, cores float64) edge {
		return e.event(recording.SourceHost, recording.KindNeighbours, 0, 1e9,
			[]recording.Neighbour{{PID: 7, Command: "app", Cores: cores}})
	}
	active := map[string]float64{
		"used_cpu_user": 12, "used_cpu_sys": 3, "used_cpu_user_main_thread": 3,
		"used_cpu_sys_main_thread": 1,
	}
	explainEdge(t, find("io-threads-oversubscribed"), []edgeCase{
		{name: "T1: more threads than CPUs", rec: neighbour(threads(waiting("8"), 1.2, 4).mainThread(0.2,
			0.7).level("host", "cpus_allowed", 2), 0.5), found: true, evidence: "io-threads is 8, while " +
			"the server has 2 CPUs", fix: "io-threads from 8 to 1"},
		{name: "T1: others use more", rec: neighbour(threads(waiting("2"), 0.2, 0.2).mainThread(0.2, 0.7).level("host",
			"cpus_allowed", 2), 1.5), found: true, against: "other processes used more"},
		{name: "T1: enough CPUs", rec: threads(waiting("4"), 2.5, 0.1).mainThread(0.9, 0.01).level("host",
			"cpus_allowed", 8)},
		{name: "T1: they sleep", rec: threads(waiting("4"), 0.01, 0).mainThread(0.2, 0.3).level("host", "cpus_allowed",
			2)},
		{
			name: "T1: a quota is the bound", rec: threads(waiting("4"), 1.3, 0.5).mainThread(0.3, 0.3).level("host",
				"cpus_allowed", 8).
				snapshot("host", "cgroup",
					`{"version":2,"levels":[{"path":"/a","quota_us":200000,"period_us":100000}]}`),
			found: true, evidence: "has 2 CPUs",
		},
		{name: "T0: spinning threads that do not get a core each", rec: waiting("4").info(active).level("server",
			"io_threads_active", 1), found: true, doubted: true, against: "was not seen"},
		{name: "T0: not active", rec: waiting("4").info(active).level("server", "io_threads_active", 0)},
		{name: "one thread", rec: threads(waiting("1"), 0, 0).mainThread(0.5, 0.5)},
	})
}
