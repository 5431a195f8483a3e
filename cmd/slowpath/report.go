package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
	"slowpath/internal/watching"
)

func (a *app) report() *cobra.Command {
	v := watching.Verdict{CommandLine: a.CommandLine}
	var connections, each bool
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
			if _, err := named.Files(args); err != nil {
				return err
			}
			if connections && profiles != "" {
				return cli.Usagef("--connections and --profiles each replace the report: give one of them")
			}
			if each && !connections {
				return cli.Usagef("--each has no effect without --connections")
			}
			if v.Page.Path != "" && (connections || profiles != "") {
				return cli.Usagef("--html is the page of a verdict: leave out --connections and --profiles")
			}
			if err := v.Page.Open(&a.Scratch); err != nil {
				return err
			}
			defer v.Page.Discard()
			a.InterruptEnds("there is no report")
			if connections {
				return a.connections(args, v.AsJSON, each)
			}
			if profiles != "" {
				return a.writeProfiles(args[0], profiles)
			}
			err := v.Files(cmd.Context(), args)
			a.Code = cli.ExitClean
			return err
		},
	}
	c.Flags().BoolVar(&v.AsJSON, "json", false, "print "+verdict.Schema+"; with --connections "+
		report.ConnectionsSchema)
	addPageFlag(c, &v.Page)
	c.Flags().BoolVar(&connections, "connections", false, "show instead how long connections had been idle when they "+
		"were used again, or closed, and by whom")
	c.Flags().BoolVar(&each, "each", false, "with --connections: list the closed connections, too")
	c.Flags().StringVar(&profiles, "profiles", "", "write its profiles into this `directory` instead: for pprof, "+
		"collapsed, and drawn as flame graphs")
	return c
}

// writeProfiles writes the profiles of a recording into a directory.
func (a *app) writeProfiles(path, dir string) error {
	rec, err := a.Damaged(path)
	if err != nil {
		return err
	}
	if rec.Damage != "" {
		a.Say(rec.Damage)
	}
	n, page, err := report.WriteProfiles(rec, dir, "Profiles of "+filepath.Base(path))
	switch {
	case err != nil:
		return cli.Usagef("--profiles: %w", err)
	case n == 0:
		return cli.Usagef("%s holds no profiles: record with --pprof ADDRESS", path)
	}
	a.Say(fmt.Sprintf("%s in %s, drawn in %s; go tool pprof reads NAME.pb.gz, flamegraph.pl and "+
		"speedscope NAME.collapsed", format.Count(n, "profile"), layout.OneLine(dir), layout.OneLine(page)))
	return nil
}

// connections shows how long connections were idle.
func (a *app) connections(paths []string, asJSON, each bool) error {
	rec, err := a.Recordings(paths, false)
	if err != nil {
		return err
	}
	doc := report.ConnectionsOf(rec, each)
	if asJSON {
		return layout.JSON(a.Stdout, "the connections", doc)
	}
	return doc.Text(a.Stdout, a.Style())
}
