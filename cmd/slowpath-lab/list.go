//go:build linux

package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

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
			if err := listScenarios(a.Stdout, a.listStyle().Width); err != nil {
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

// leastTexts is the least width of texts beside names: below it they go below their names.
const leastTexts = 30

// listScenarios prints each scenario with what is done, and its truth where its name is another. Long texts go on below
// themselves.
func listScenarios(w io.Writer, width int) error {
	names := 0
	for _, i := range scenario.Catalogue() {
		names = max(names, len(i.ID))
	}
	indent := names + 2
	if width < indent+leastTexts {
		names, indent = 0, 2
	}
	var b strings.Builder
	for _, i := range scenario.Catalogue() {
		text := i.Title
		if i.ID != i.Cause && i.Cause != "healthy" {
			text += " (truth: " + i.Cause + ")"
		}
		text = strings.ReplaceAll(layout.Fill(text, width-indent), "\n", "\n"+strings.Repeat(" ", indent))
		if names == 0 {
			fmt.Fprintf(&b, "%s\n  %s\n", i.ID, text)
			continue
		}
		fmt.Fprintf(&b, "%-*s  %s\n", names, i.ID, text)
	}
	_, err := io.WriteString(w, b.String())
	return err
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
