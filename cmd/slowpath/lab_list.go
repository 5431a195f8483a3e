//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/incident"
	"slowpath/internal/report/layout"
)

func (a *app) labIncidents() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the incidents, and what lab up has started",
		Example: "  slowpath lab list",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := listIncidents(a.stdout, a.listWidth()); err != nil {
				return err
			}
			l, err := incident.New(defaultServer, io.Discard)
			if err != nil {
				return err
			}
			return a.printRunning(l)
		},
	}
}

// listWidth is the width of the terminal, 0 where the list goes to a program, which wants one line each.
func (a *app) listWidth() int {
	if f, ok := a.stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return a.style().Width
	}
	return 0
}

// listIncidents prints each incident with what is done, and its truth where its name is another. Long texts go on below
// themselves.
func listIncidents(w io.Writer, width int) error {
	names := 0
	for _, i := range incident.Catalogue() {
		names = max(names, len(i.ID))
	}
	var b strings.Builder
	for _, i := range incident.Catalogue() {
		text := i.Title
		if i.ID != i.Cause && i.Cause != "healthy" {
			text += " (truth: " + i.Cause + ")"
		}
		indent := names + 2
		if width > indent {
			text = strings.ReplaceAll(layout.Fill(text, width-indent), "\n", "\n"+strings.Repeat(" ", indent))
		}
		fmt.Fprintf(&b, "%-*s  %s\n", names, i.ID, text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printRunning lists what lab up has started.
func (a *app) printRunning(l *incident.Lab) error {
	list, err := l.Fleet.List()
	if err != nil || len(list) == 0 {
		return err
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nRUNNING\tNAME\tROLE\tADDRESS\tPID\tDIRECTORY")
	for _, i := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", i.Server, nameOf(i), i.Role, i.Addr, i.PID, i.Dir)
	}
	return w.Flush()
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
