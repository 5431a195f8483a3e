package main

import (
	"strings"

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

CAUSE is the id that doctor prints, or the beginning of one. Without it, all causes are listed.`,
		Example: `  slowpath explain
  slowpath explain server-cfs-throttled
  slowpath explain pool-leak --json`,
		RunE: func(_ *cobra.Command, args []string) error {
			chosen := cause.Catalogue()
			switch len(args) {
			case 0:
			case 1:
				one, err := causeOf(args[0])
				if err != nil {
					return err
				}
				chosen = []cause.Cause{one}
			default:
				return cli.Usagef("explain takes one CAUSE, not %d; see: slowpath explain --help", len(args))
			}
			texts := make([]report.CauseText, len(chosen))
			for i, c := range chosen {
				texts[i] = report.TextOf(c)
			}
			switch {
			case asJSON:
				return report.CausesJSON(a.Stdout, texts)
			case len(args) == 0:
				return report.CauseList(a.Stdout, texts, a.Style())
			}
			return report.Cause(a.Stdout, texts[0], a.Style())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print "+report.CausesSchema)
	return c
}

// causeOf finds a cause by its id, or by a beginning that no other cause has.
func causeOf(id string) (cause.Cause, error) {
	all := cause.Catalogue()
	var ids []string
	var found []cause.Cause
	for _, c := range all {
		if c.ID == id {
			return c, nil
		}
		ids = append(ids, c.ID)
		if strings.HasPrefix(c.ID, strings.ToLower(id)) && id != "" {
			found = append(found, c)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return cause.Cause{}, cli.Usagef("no cause %q%s; all are listed by: slowpath explain", id, cli.DidYouMean(id, ids))
}
