// Package hosts has facts about the hosts of servers and callers: CPUs and their quotas, processes, what the kernel
// did with packets, and profiles of programs.
package hosts
