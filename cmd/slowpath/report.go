package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
)

func (a *app) report() *cobra.Command {
	var asJSON, connections, each bool
	var profiles string
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Show a recording or a packet capture as text or JSON",
		Long: "report shows what a recording holds, with the verdict of this version of slowpath. Unlike doctor it " +
			"exits with 0 whatever the verdict.",
		Example: `  slowpath report night.slowpath
  slowpath report night.slowpath --json
  slowpath report night.slowpath --connections --each
  slowpath report night.slowpath --profiles stacks`,
		Args: cli.OneArgument("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := recordingsOf(args); err != nil {
				return err
			}
			if connections && profiles != "" {
				return cli.Usagef("--connections and --profiles each replace the report: give one of them")
			}
			if each && !connections {
				return cli.Usagef("--each has no effect without --connections")
			}
			if a.page.path != "" && (connections || profiles != "") {
				return cli.Usagef("--html is the page of a verdict: leave out --connections and --profiles")
			}
			if err := a.page.open(&a.Scratch); err != nil {
				return err
			}
			defer a.page.discard()
			a.InterruptEnds("there is no report")
			if connections {
				return a.connections(args, asJSON, each)
			}
			if profiles != "" {
				return a.writeProfiles(args[0], profiles)
			}
			err := a.diagnoseFiles(cmd.Context(), args, asJSON)
			a.Code = cli.ExitClean
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print "+verdict.Schema+"; with --connections "+report.ConnectionsSchema)
	a.page.addFlag(c)
	c.Flags().BoolVar(&connections, "connections", false, "show instead how long connections had been idle when they "+
		"were used again, or closed, and by whom")
	c.Flags().BoolVar(&each, "each", false, "with --connections: list the closed connections, too")
	c.Flags().StringVar(&profiles, "profiles", "", "write its profiles into this `directory` instead: for pprof, "+
		"collapsed, and drawn as flame graphs")
	return c
}

// connections shows how long connections were idle.
func (a *app) connections(paths []string, asJSON, each bool) error {
	rec, notes, err := a.openRecordings(paths, false)
	if err != nil {
		return err
	}
	a.notes(notes)
	doc := report.ConnectionsOf(rec, each)
	if asJSON {
		return layout.JSON(a.Stdout, "the connections", doc)
	}
	return doc.Text(a.Stdout, a.Style())
}
