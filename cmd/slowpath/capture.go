//go:build linux

package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/capturing"
	"slowpath/internal/source/capture/sniffer"
	"slowpath/internal/wire/target"
)

func (a *app) capture() *cobra.Command {
	var f capturing.Options
	c := &cobra.Command{
		Use:   "capture [TARGET...] -o FILE",
		Short: shortCapture,
		Long: `capture writes the TCP packets of servers to files that doctor, report, trace, tcpdump and Wireshark
read (pcapng). It keeps the newest: when the last file of the ring is full, the oldest is removed. A filter in the
kernel chooses the packets: those from and to each TARGET (HOST:PORT), or without one those of port 6379.

Ctrl-C ends it; the files are whole then. Should it be killed, a file may lack the last second.

The files hold what was sent: keys, values and passwords (AUTH). Only their owner can read them. --snaplen cuts
packets, and with them long values; passwords are short, and stay.`,
		Example: `  slowpath capture -o redis.pcapng
  slowpath capture 10.0.0.5:6379 -i eth0 --for 10m -o redis.pcapng
  slowpath doctor redis-*.pcapng`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Check(args, cmd.Flags().Changed("port")); err != nil {
				return err
			}
			return capturing.Run(cmd.Context(), a.Program, &f, args, a.DropBeside)
		},
	}
	fl := c.Flags()
	fl.StringVarP(&f.Files.Path, "output", "o", "", "`file` to write: redis.pcapng makes redis-00001.pcapng and so "+
		"on, which must not exist")
	fl.StringVarP(&f.Interface, "interface", "i", sniffer.Any, "`interface` to capture on: any for all")
	fl.IntSliceVarP(&f.Ports, "port", "p", []int{target.DefaultPort}, "`ports` of servers, where no TARGET is given")
	fl.DurationVar(&f.Duration, "for", 0, "how long to capture (0: until Ctrl-C)")
	fl.IntVar(&f.Files.Number, "ring", 10, "`number` of files: the oldest is removed when there are more")
	fl.Int64Var(&f.Files.FileBytes, "file-size", 100e6, "`bytes` of a file, after which the next is begun")
	fl.IntVar(&f.SnapBytes, "snaplen", sniffer.MaxPacket, "`bytes` of each packet to keep; what is cut can hide slow "+
		"calls")
	return c
}
