package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/wire/target"
)

// whereFlags are the flags of redis-cli that say where and who.
type whereFlags struct{ target.Options }

func (a *app) targetFlags(c *cobra.Command) {
	f := c.Flags()
	own := cli.OwnFlags(f)
	a.addAddressFlags(c)
	o := &a.where
	f.StringVarP(&o.Socket, "socket", "s", "", "server `socket` (instead of host and port)")
	f.StringVarP(&o.Password, "pass", "a", "", "`password`; better in REDISCLI_AUTH, which other users cannot see in "+
		"ps")
	f.StringVarP(&o.URI, "uri", "u", "", "server `URI`: redis://user:password@host:port/db, rediss://..., unix:///path")
	f.IntVarP(&o.DB, "db", "n", 0, "database `number`")
	f.StringVar(&o.User, "user", "", "`user` name for AUTH")
	f.BoolVar(&o.AskPass, "askpass", false, "ask for the password on the terminal")
	addTLSFlags(f, &o.Options)
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
	c.Flags().StringVarP(&a.where.Host, "host", "h", "", "server `host` (default 127.0.0.1)")
	c.Flags().IntVarP(&a.where.Port, "port", "p", 0, "server `port` (default 6379)")
}

// targets are the servers that the command line names.
func (a *app) targets(ctx context.Context, args []string) ([]target.Target, error) {
	files, err := recordingsOf(args)
	if err != nil {
		return nil, err
	}
	if len(files) > 0 {
		return nil, cli.Usagef("%s is a file, and this needs a server: write HOST:PORT; for the verdict of a "+
			"recording: slowpath doctor %s", files[0], files[0])
	}
	a.assumed = a.unnamed(args)
	a.where.ReadPassword = func() (string, error) { return a.ReadPassword(ctx) }
	ts, err := a.where.Targets(args, a.Env)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return ts, nil
}

// recordingsOf decides whether the arguments name recordings, none where they are targets. A name that is a file is a
// recording; what looks like one and is not there is an error, and not a host name to resolve.
func recordingsOf(args []string) (files []string, err error) {
	for _, arg := range args {
		if strings.Contains(arg, "://") {
			continue
		}
		isCapture := captureName.MatchString(arg)
		isPath := strings.ContainsRune(arg, os.PathSeparator) || strings.HasPrefix(arg, ".") || isCapture ||
			strings.HasSuffix(arg, ".slowpath")
		st, err := os.Stat(arg)
		switch {
		case err == nil && st.Mode().IsRegular():
			files = append(files, arg)
		// a bare word may be a host: docker names one "redis", next to a directory of that name
		case err == nil && st.IsDir() && isPath:
			return nil, cli.Usagef("%s is a directory: give a recording (FILE.slowpath) or HOST:PORT", arg)
		case err == nil && isPath && st.Mode()&fs.ModeSocket == 0:
			return nil, cli.Usagef("%s is neither a recording nor a socket: give FILE.slowpath, a unix socket or "+
				"HOST:PORT",
				arg)
		case errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(arg, ".slowpath"):
			return nil, cli.Usagef("no such recording: %s; check the name, or make it: slowpath record HOST:PORT -o %s",
				arg, arg)
		case errors.Is(err, fs.ErrNotExist) && isCapture:
			return nil, cli.Usagef("no such capture: %s; check the name", arg)
		case err != nil && (isCapture || strings.HasSuffix(arg, ".slowpath")):
			return nil, cli.Usagef("the recording cannot be read: %w; name a file that can", err)
		}
	}
	if len(files) > 0 && len(files) < len(args) {
		return nil, cli.Usagef("%s is a file: give only recordings, or only servers", files[0])
	}
	return files, nil
}
