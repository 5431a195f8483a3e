package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/manyhosts"
)

func (a *app) fleetSchema() *cobra.Command {
	c := &cobra.Command{
		Use:   "schema apply|check clickhouse://USER@HOST:9000/DATABASE",
		Short: "Make the tables that OpenTelemetry Collectors fill, or check that they are there",
		Long: `schema apply makes the database and its tables in ClickHouse, or adds what a new version of slowpath
needs. It removes and changes nothing. schema check says what is missing. The password is in CLICKHOUSE_PASSWORD.

Exit codes: 0 done, 1 check: something is missing, 2 usage, 3 cannot connect.`,
		Example: `  CLICKHOUSE_PASSWORD=secret slowpath fleet schema apply clickhouses://ops@ch.example:9440/slowpath
  slowpath fleet schema check clickhouse+http://127.0.0.1:8123/slowpath`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] != "apply" && args[0] != "check" || !manyhosts.IsClickHouse(args[1]) {
				return cli.Usagef("write: slowpath fleet schema apply clickhouse://USER@HOST:9000/DATABASE, or check")
			}
			password := a.Env("CLICKHOUSE_PASSWORD")
			if args[0] == "apply" {
				return manyhosts.ApplySchema(cmd.Context(), args[1], password, func(line string) { _ = a.Line(line) })
			}
			source, err := manyhosts.OpenClickHouse(cmd.Context(), args[1], password)
			if err != nil {
				return err
			}
			defer source.Close()
			if err := source.CheckSchema(cmd.Context()); err != nil {
				a.Code = cli.ExitFindings
				return a.Line(err.Error())
			}
			return a.Line("the schema is that of this slowpath")
		},
	}
	return c
}
