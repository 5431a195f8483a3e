package random

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// machine is this host in a few words.
func machine() string {
	text := fmt.Sprintf("%d CPUs", runtime.NumCPU())
	if model := processor(); model != "" {
		text += " (" + model + ")"
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		text += fmt.Sprintf(", %s %s", unix.ByteSliceToString(name.Sysname[:]),
			unix.ByteSliceToString(name.Release[:]))
	}
	return text
}

// processor is the model of the CPUs, if the kernel says it.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
