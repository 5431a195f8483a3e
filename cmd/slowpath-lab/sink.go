//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/lab/sink"
)

// maxSinkValue is in bytes; replies to a whole read are kept.
const maxSinkValue = 64 << 10

func (a *app) sink() *cobra.Command {
	var port, valueBytes int
	c := &cobra.Command{
		Use:   "sink",
		Short: "A server that answers +OK to everything, until Ctrl-C",
		Long: "sink answers +OK, or a value, to every command at once, so that a load generator shows what it can " +
			"do at most.",
		Example: `  slowpath lab sink --port 7777 &
  slowpath bench 127.0.0.1:7777 --command set
  slowpath lab sink --port 7778 --value-size 1024 &
  slowpath bench 127.0.0.1:7778 --command get`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if valueBytes < 0 || valueBytes > maxSinkValue {
				return cli.Usage(fmt.Errorf("--value-size %d: 0 to %d bytes", valueBytes, maxSinkValue))
			}
			l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
			if err != nil {
				return cli.Usage(err)
			}
			defer l.Close()
			fmt.Fprintf(a.Stdout, "127.0.0.1:%d\n", l.Addr().(*net.TCPAddr).Port)
			err = sink.Serve(cmd.Context(), l, valueBytes)
			return errors.Join(err, cmd.Context().Err())
		},
	}
	c.Flags().IntVar(&port, "port", 0, "on loopback; 0: any that is free, which is printed")
	c.Flags().IntVar(&valueBytes, "value-size", 0, "answer with strings of so many bytes in place of +OK")
	return c
}
