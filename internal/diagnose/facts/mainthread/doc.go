// Package mainthread has facts about what the main thread of a server did while calls waited for it: commands,
// scripts, forks, the disk, its own jobs, and waits for a CPU.
package mainthread
