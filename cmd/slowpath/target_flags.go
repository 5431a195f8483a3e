package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/wire/target"
)

// targetFlags are the flags of redis-cli that say where and who.
func (a *app) targetFlags(c *cobra.Command) {
	f := c.Flags()
	own := cli.OwnFlags(f)
	a.addAddressFlags(c)
	o := &a.Where
	f.StringVarP(&o.Socket, "socket", "s", "", "server `socket` (instead of host and port)")
	f.StringVarP(&o.Password, "pass", "a", "", "`password`; better in REDISCLI_AUTH, which other users cannot see in "+
		"ps")
	f.StringVarP(&o.URI, "uri", "u", "", "server `URI`: redis://user:password@host:port/db, rediss://..., unix:///path")
	f.IntVarP(&o.DB, "db", "n", 0, "database `number`")
	f.StringVar(&o.User, "user", "", "`user` name for AUTH")
	f.BoolVar(&o.AskPass, "askpass", false, "ask for the password on the terminal")
	addTLSFlags(f, o)
	f.BoolVarP(&o.Cluster, "cluster", "c", false, "the target is a seed of a cluster: take all of its nodes (doctor "+
		"and record always do)")
	f.BoolVarP(&o.RESP2, "resp2", "2", false, "speak RESP2")
	f.BoolVarP(&o.RESP3, "resp3", "3", false, "speak RESP3")
	cli.Mark(f, own)
}

func addTLSFlags(f *pflag.FlagSet, o *target.Options) {
	f.BoolVar(&o.TLS, "tls", false, "connect with TLS")
	f.StringVar(&o.SNI, "sni", "", "server `name` for TLS")
	f.StringVar(&o.CACert, "cacert", "", "`file` with the CA certificates to trust")
	f.StringVar(&o.Cert, "cert", "", "client certificate `file`")
	f.StringVar(&o.Key, "key", "", "client key `file`")
	f.BoolVar(&o.Insecure, "insecure", false, "accept any certificate")
}

// addressFlags are those of targetFlags that matter where nobody logs in.
func (a *app) addressFlags(c *cobra.Command) {
	own := cli.OwnFlags(c.Flags())
	a.addAddressFlags(c)
	cli.Mark(c.Flags(), own)
}

func (a *app) addAddressFlags(c *cobra.Command) {
	c.Flags().StringVarP(&a.Where.Host, "host", "h", "", "server `host` (default 127.0.0.1)")
	c.Flags().IntVarP(&a.Where.Port, "port", "p", 0, "server `port` (default 6379)")
}
