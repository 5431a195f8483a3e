package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/source/tap"
)

// processFlags say which processes the tap keeps calls of.
type processFlags struct{ tap.ProcessFilter }

func (w *processFlags) add(f *pflag.FlagSet) {
	f.IntVar(&w.PID, "pid", 0, "only calls from or to this `process`; without TARGET also which server that is")
	f.StringVar(&w.Comm, "comm", "", "only calls from or to processes of this `name`, as in ps")
	f.StringVar(&w.Container, "container", "", "only calls from or to this container: begin of its `id`, or part of "+
		"its cgroup's path")
}

// check refuses what cannot be met: live by the processes of this host, else by a recording.
func (w *processFlags) check(cmd *cobra.Command, live bool) error {
	for _, name := range []string{"pid", "comm", "container"} {
		f := cmd.Flags().Lookup(name)
		if f.Changed && live && runtime.GOOS != "linux" {
			return cli.MissingTap("--" + name)
		}
		if f.Changed && (f.Value.String() == "" || f.Value.String() == "0") {
			return cli.Usagef("--%s is empty: name one, or leave it out for all", name)
		}
	}
	if w.PID < 0 {
		return cli.Usagef("--pid %d: must not be negative", w.PID)
	}
	if strings.ContainsRune(w.Comm, '/') {
		return cli.Usagef("--comm %s is a path: give the name alone, as ps -o comm shows it", w.Comm)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", w.PID)); live && w.PID != 0 && err != nil {
		return cli.Usagef("--pid %d: there is no such process on this host; ps -eo pid,comm lists them", w.PID)
	}
	return nil
}
