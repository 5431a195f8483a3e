// Package named is what a command line names: servers, recordings, captures of packets, texts, and results of loads.
package named

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"slowpath/internal/cli"
	"slowpath/internal/wire/target"
)

// CommandLine is one that names servers or files.
type CommandLine struct {
	*cli.Program
	Where   target.Options // the flags of redis-cli that say where and who
	assumed bool           // the target is the default one: nothing named another
}

// Targets are the servers that the command line names.
func (c *CommandLine) Targets(ctx context.Context, args []string) ([]target.Target, error) {
	files, err := Files(args)
	if err != nil {
		return nil, err
	}
	if len(files) > 0 {
		return nil, cli.Usagef("%s is a file, and this needs a server: write HOST:PORT; for the verdict of a "+
			"recording: slowpath doctor %s", files[0], files[0])
	}
	c.assumed = c.Unnamed(args)
	c.Where.ReadPassword = func() (string, error) { return c.ReadPassword(ctx) }
	ts, err := c.Where.Targets(args, c.Env)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return ts, nil
}

// Unnamed says that the command line names no server.
func (c *CommandLine) Unnamed(args []string) bool {
	return len(args) == 0 && c.Where.Host == "" && c.Where.Port == 0 && c.Where.Socket == "" && c.Where.URI == ""
}

// Files decides whether the arguments name recordings, none where they are targets. A name that is a file is a
// recording; what looks like one and is not there is an error, and not a host name to resolve.
func Files(args []string) (files []string, err error) {
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
				"HOST:PORT", arg)
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
