//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/lab/codis"
)

func (a *app) codisProxy() *cobra.Command {
	var port int
	c := &cobra.Command{
		Use:   "codis-proxy SERVER...",
		Short: "A stand-in for codis-proxy over servers, until Ctrl-C",
		Long: `codis-proxy is a stand-in for Codis, which no registry has: a proxy that spreads keys over servers by
1024 slots (CRC-32 of the hash tag), and migrates slots one key at a time. A call for a key that has not migrated yet
waits for that. It sends MIGRATE to servers of any version, where codis-proxy sends SLOTSMGRTTAGONE to its patched
ones. It has no dashboard, no replicas and no authentication. Its own commands are SLOTSOWNERS, which says where slots
are, and SLOTSMIGRATE, by which lab migrate-slots moves them. lab up --proxy codis starts it with its servers.`,
		Example: "  slowpath lab codis-proxy --port 19000 127.0.0.1:6379 127.0.0.1:6380",
		Args: func(cmd *cobra.Command, servers []string) error {
			if len(servers) == 0 {
				return cli.Usagef("give the servers, HOST:PORT each; see: %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, servers []string) error {
			p, err := codis.New(servers)
			if err != nil {
				return cli.Usage(err)
			}
			if err := codis.Rename(); err != nil {
				return err
			}
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err != nil {
				return cli.Usage(err)
			}
			fmt.Fprintln(a.Stdout, l.Addr())
			return p.Serve(cmd.Context(), l)
		},
	}
	c.Flags().IntVar(&port, "port", 0, "on loopback; 0: any that is free, which is printed")
	return c
}

func (a *app) migrateSlots() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "migrate-slots PROXY SLOTS --to SERVER",
		Short: "Move slots of lab up --proxy codis to another server",
		Long: `migrate-slots has the proxy of lab up --proxy codis move slots to one of its servers, one key at a time,
and waits until all of them are there. Calls go on meanwhile: one for a key that has not moved yet waits for that. While
a key moves, both servers answer nobody: a big key stalls all calls to them. Called again, it goes on where an error
ended it.`,
		Example: `  slowpath lab migrate-slots 127.0.0.1:19000 0-511 --to 127.0.0.1:6380
  slowpath lab migrate-slots 127.0.0.1:19000 7 --to 127.0.0.1:6380 &
  slowpath doctor 127.0.0.1:6380`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 || to == "" {
				return cli.Usagef("give the proxy, the slots and --to SERVER; see: %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			slots, err := codis.ParseRange(args[1])
			if err != nil {
				return cli.Usage(err)
			}
			if _, err := codis.Owners(cmd.Context(), args[0]); errors.Is(err, codis.ErrNotProxy) {
				return cli.Usagef("%w; see: slowpath lab list", err)
			} else if err != nil {
				return err
			}
			began := time.Now()
			a.OnInterrupt("the same command goes on where it ends")
			done := a.Working("moving the slots %s to %s", slots, to)
			keys, err := codis.Migrate(cmd.Context(), args[0], slots, to)
			done()
			if errors.Is(err, codis.ErrRequest) {
				return cli.Usage(err)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Stdout, "slots %s are at %s: %s moved in %s, besides those that calls moved\n", slots, to,
				format.Count(keys, "key"), time.Since(began).Round(time.Millisecond))
			return nil
		},
	}
	c.Flags().StringVar(&to, "to", "", "HOST:PORT of the `server` that gets them, as SLOTSOWNERS has it")
	return c
}
