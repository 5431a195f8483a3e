package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/diagnose/verdict"
)

func (a *app) report() *cobra.Command {
	var asJSON bool
	var profiles string
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Show a recording or a packet capture as text or JSON",
		Long: "report shows what a recording holds, with the verdict of this version of slowpath. Unlike doctor it " +
			"exits with 0 whatever the verdict.",
		Example: `  slowpath report night.slowpath
  slowpath report night.slowpath --json
  slowpath report night.slowpath --profiles stacks`,
		Args: oneArgument("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := recordingsOf(args); err != nil {
				return err
			}
			if profiles != "" {
				return a.writeProfiles(args[0], profiles)
			}
			err := a.diagnoseFiles(cmd.Context(), args, asJSON)
			a.code = exitClean
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print "+verdict.Schema)
	c.Flags().StringVar(&profiles, "profiles", "", "write its profiles into this `directory` instead: for pprof, "+
		"collapsed, and drawn as flame graphs")
	return c
}
