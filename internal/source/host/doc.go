// Package host is the source of what the files of a Linux host show about a Redis or Valkey server and its callers:
// /proc, /sys, cgroups of either version and socket statistics (tier T1).
//
// It records and never judges. [Locate] finds the process behind a connection, [Watch] writes what it sees to a
// recording: the states of the server's main thread as events (throttled, run-queue, frozen, blocked, busy), counters
// as samples, and what it could not see as blind spots. It changes nothing on the host: files are opened for reading
// only, and a foreign network namespace is entered on a thread of its own, which ends afterwards.
//
// # What the kernel's numbers mean
//
// Measured on Linux 6.18 (HZ=250, cgroup v1 cpu controller), see TestThrottledSpans:
//
//   - /proc/PID/task/TID/schedstat run_ns grows at the timer tick (4 ms at HZ=250) while the thread runs, and when it
//     leaves the CPU. delay_ns grows only when the thread gets a CPU, by the whole wait that ended; its third field
//     counts how often it got one. (kernel/sched/stats.h sched_info_arrive)
//   - delay_ns includes the time a thread was throttled: over 20 periods of 20 ms/100 ms, delay_ns grew by 1 599.87 ms
//     and throttled_time of cpu.stat by 1 599.33 ms. So run-queue time is delay_ns minus throttled time.
//   - throttled_time grows only at the end of a throttled period, by its whole length, summed over the CPUs that were
//     throttled.
//   - a thread frozen by the v1 freezer is in state D, one frozen by cgroup v2 in state S: the state alone does not
//     show it.
package host
