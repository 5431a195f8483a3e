package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/report"
)

func (a *app) explainCause() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain [CAUSE]",
		Short: "What a cause is: how it slows calls, how it is told apart, what ends it",
		Long: `explain says what is known of a cause, whatever was watched: how it makes calls slow, what it is seen by,
what rules it out, which causes look like it, what ends it, which scenario of the lab makes it, and the sources.

CAUSE is the id that doctor prints, or a part of one: where several causes have it, they are listed. Without it, all
causes are listed.`,
		Example: `  slowpath explain
  slowpath explain server-cfs-throttled
  slowpath explain pool
  slowpath explain pool-leak --json`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("explain takes one CAUSE, not %d; see: slowpath explain --help", len(args))
			}
			chosen := cause.Catalogue()
			if len(args) == 1 {
				var err error
				if chosen, err = causesOf(args[0]); err != nil {
					return err
				}
			}
			texts := make([]report.CauseText, len(chosen))
			for i, c := range chosen {
				texts[i] = report.TextOf(c)
			}
			switch {
			case asJSON:
				return report.CausesJSON(a.Stdout, texts)
			case len(texts) > 1:
				return report.CauseList(a.Stdout, texts, a.Style())
			}
			return report.Cause(a.Stdout, texts[0], a.Style())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print "+report.CausesSchema)
	return c
}

// causesOf are the causes that a part of an id names.
func causesOf(part string) ([]cause.Cause, error) {
	if found := cause.Named(part); len(found) > 0 && part != "" {
		return found, nil
	}
	var ids []string
	for _, c := range cause.Catalogue() {
		ids = append(ids, c.ID)
	}
	return nil, cli.Usagef("no cause %q%s; all are listed by: slowpath explain", part, cli.DidYouMean(part, ids))
}
