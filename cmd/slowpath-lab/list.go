//go:build linux

package main

import (
	"io"
	"math"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"slowpath/internal/cli"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/report/layout"
)

func (a *app) scenarios() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the scenarios, and what lab up has started",
		Example: "  slowpath lab list",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := scenario.WriteList(a.Stdout, a.listStyle().Width); err != nil {
				return err
			}
			l, err := scenario.New(defaultServer, io.Discard)
			if err != nil {
				return err
			}
			return a.printRunning(l)
		},
	}
}

// listStyle is that of the terminal; where a list goes to a program, each entry has one line.
func (a *app) listStyle() layout.Style {
	s := a.Style()
	if f, ok := a.Stdout.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		s.Width = math.MaxInt16
	}
	return s
}

// printRunning lists what lab up has started.
func (a *app) printRunning(l *scenario.Lab) error {
	a.ProgressDone()
	list, err := l.Fleet.List()
	if err != nil || len(list) == 0 {
		return err
	}
	var cells [][]string
	for _, i := range list {
		cells = append(cells, []string{
			string(i.Server), nameOf(i), string(i.Role), i.Addr, strconv.Itoa(i.PID), i.Dir,
		})
	}
	p := layout.New(a.listStyle())
	p.Line("")
	p.Table([]string{"RUNNING", "NAME", "ROLE", "ADDRESS", "PID", "DIRECTORY"}, cells)
	return p.To(a.Stdout, "the list")
}

// nameOf says by which name lab down stops a server, or who does.
func nameOf(i fleet.Listed) string {
	switch {
	case !i.Persistent:
		return "(of a lab that runs)"
	case !i.Own:
		return i.Fleet + " (of user " + i.User + ")"
	}
	return i.Fleet
}
