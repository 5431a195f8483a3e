package recording

import (
	"fmt"
)

// Task is a thread or process that was on the CPU.
type Task struct {
	PID  int    `json:"pid"`
	TID  int    `json:"tid,omitempty"`
	Comm string `json:"comm"`
}

// ThreadDetail is the Detail of throttled, run-queue, frozen, blocked and busy.
type ThreadDetail struct {
	TID     int     `json:"tid,omitempty"`
	Share   float64 `json:"share"`             // of the event's duration in this state, 0..1
	Cgroup  string  `json:"cgroup,omitempty"`  // throttled, frozen: path of the cgroup
	Cores   float64 `json:"cores,omitempty"`   // tap, throttled: the quota of that cgroup
	Syscall string  `json:"syscall,omitempty"` // blocked: name of the system call
	// blocked: the server's file in that system call, without its directory
	File   string `json:"file,omitempty"`
	Device string `json:"device,omitempty"` // and its block device
	// blocked: what it has open instead of a file: "its standard output, a pipe"
	Other string `json:"other,omitempty"`
	Wchan string `json:"wchan,omitempty"` // blocked: kernel function
	Comm  string `json:"comm,omitempty"`  // tap: name of the thread
	// tap, run-queue: the last thread on the CPU before it ran; blocked: the one that made room in a pipe or a socket;
	// lock-wait, elsewhere: the one that woke it
	By *Task `json:"by,omitempty"`
}

// Holder is the cgroup that kept a thread from running, with its quota if that is known.
func (d ThreadDetail) Holder() string {
	if d.Cgroup == "" || d.Cores == 0 {
		return d.Cgroup
	}
	return fmt.Sprintf("CPU quota of %s (%.2f cores)", d.Cgroup, d.Cores)
}

// Call is the system call in which a thread was blocked, with its file if that is known: "fdatasync of appendonly.aof
// on vda", "write to its standard output, a pipe that fluentd[4120] reads".
func (d ThreadDetail) Call() string {
	text := d.Syscall
	if d.Other != "" {
		to, does := " to ", "reads"
		if d.Syscall == "read" {
			to, does = " from ", "writes"
		}
		text += to + d.Other
		if d.By != nil {
			text += fmt.Sprintf(" that %s[%d] %s", d.By.Comm, d.By.PID, does)
		}
	}
	if d.File != "" {
		text += " of " + d.File
	}
	if d.Device != "" {
		text += " on " + d.Device
	}
	return text
}
