package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/schemas"
)

func (a *app) schema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "The JSON Schema of a document, with what its fields mean",
		Long: `schema prints the JSON Schema (2020-12) of a document that slowpath prints. NAME is what the document
has in its field schema. Within a version, fields are added and never removed, renamed or given another meaning. The
schema "openapi" describes the API of an agent (OpenAPI 3.1).

Without a NAME, all are listed.`,
		Example: `  slowpath schema
  slowpath schema slowpath.diagnosis/v1
  slowpath schema openapi > slowpath-api.json`,
		RunE: func(_ *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				_, err := fmt.Fprintln(a.Stdout, strings.Join(schemas.Names(), "\n"))
				return err
			case 1:
			default:
				return cli.Usagef("schema takes one NAME, not %d", len(args))
			}
			body, ok := schemas.Get(args[0])
			if !ok {
				return cli.Usagef("no schema %q%s; all are listed by: slowpath schema", args[0],
					cli.DidYouMean(args[0], schemas.Names()))
			}
			_, err := a.Stdout.Write(body)
			return err
		},
	}
}
