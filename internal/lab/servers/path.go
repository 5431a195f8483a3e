package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// As says how a program is executed: after the commands of Prefix, which execute their further arguments, and with Dir
// as the path of its directory, which is open as the first descriptor after stderr. The zero value executes it
// directly.
type As struct {
	Prefix []string
	Dir    string
}

// IsPath reports whether a server is named by its path instead of the name of a version.
func IsPath(server string) bool { return strings.ContainsRune(server, filepath.Separator) }

// byPath is the origin of servers that were named by their path.
const byPath = "named by its path"

// FoundBy is by what the same server is found again: the name of its version, or its path.
func (b Binary) FoundBy() string {
	if b.Origin == byPath {
		return b.Path
	}
	return string(b.Name)
}

// AtPath is a server of any version at a path. Its name, such as "redis-7.4.1", is what it prints with --version, for
// which it has 20 s. Whether it has TLS is not known: TLS is true.
func AtPath(ctx context.Context, path string, as As) (Binary, error) {
	failed := func(err error) (Binary, error) { return Binary{}, fmt.Errorf("the server %s: %w", path, err) }
	program, file, err := executable(path)
	if err != nil {
		return failed(err)
	}
	m := manifest{Origin: byPath, Program: filepath.Base(program), File: file}
	s := Server{TLS: true, Origin: m.Origin}
	out, err := m.binary(s, filepath.Dir(program)).askAs(ctx, as)
	if err != nil {
		return failed(err)
	}
	said := whatServer.FindSubmatch(out)
	if said == nil {
		return failed(fmt.Errorf("--version does not say which server it is: %q; name a redis-server or valkey-server",
			lastLine(out)))
	}
	s.Product, s.Version = strings.ToLower(string(said[1])), string(said[2])
	s.Name = Name(s.Product + "-" + s.Version)
	return m.binary(s, filepath.Dir(program)), nil
}

// whatServer is the first line of --version: "Redis server v=7.4.1 sha=…", "Valkey server v=8.1.1 sha=…".
var whatServer = regexp.MustCompile(`(?m)^(\w{1,20}) server v=(\d[\w.+~-]{0,40})`)

// executable finds how a program is executed, and the file that has its code. A link is followed, unless the file is
// one that is another program by another name: Debian's redis-server is a link to redis-check-rdb.
func executable(path string) (program, file string, err error) {
	if program, err = filepath.Abs(path); err != nil {
		return "", "", err
	}
	if file, err = filepath.EvalSymlinks(program); err != nil {
		return "", "", err
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return "", "", err
	case info.IsDir():
		return "", "", fmt.Errorf("it is a directory; name the program in it, such as %s", programIn(path))
	case info.Mode().Perm()&0o111 == 0:
		return "", "", fmt.Errorf("it is not executable; chmod +x it")
	}
	if other, _ := otherProgram(file); !other {
		program = file
	}
	if other, by := otherProgram(program); other {
		return "", "", fmt.Errorf("executed by a path with %q it is no server; name its link redis-server, or "+
			"move it", by)
	}
	return program, file, nil
}

// programIn is the server in a directory: of a build, of an installation, or of one that `lab servers` made. Where
// there is none it is what would be in a build.
func programIn(dir string) string {
	for _, name := range []string{"redis-server", "valkey-server"} {
		for _, sub := range []string{".", "src", "bin"} {
			path := filepath.Join(dir, sub, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path
			}
		}
	}
	return filepath.Join(dir, "redis-server")
}

// otherProgram reports whether a server that is executed by this path is another program. Old versions of Redis search
// the whole path.
func otherProgram(path string) (other bool, by string) {
	names := []string{"redis-check-", "valkey-check-", "redis-sentinel", "valkey-sentinel", "--sentinel"}
	i := slices.IndexFunc(names, func(name string) bool { return strings.Contains(path, name) })
	if i < 0 {
		return false, ""
	}
	return true, names[i]
}

// askAs executes the program with --version, and returns the end of its output.
func (b Binary) askAs(ctx context.Context, as As) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	dir, err := os.Open(b.Dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if as.Dir != "" {
		b = b.From(as.Dir)
	}
	cmd := commandInGroup(ctx, append(slices.Clone(as.Prefix), b.Argv("--version")...))
	cmd.ExtraFiles = []*os.File{dir}
	if len(as.Prefix) > 0 { // nothing of root's environment
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	out := &tail{limit: outputLimit}
	cmd.Stdout, cmd.Stderr = out, out
	begin := time.Now()
	err = cmd.Run()
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("--version did not end within %.0f s; name a redis-server or valkey-server",
			time.Since(begin).Seconds())
	case errors.Is(err, os.ErrPermission), strings.Contains(out.String(), "Permission denied"): // of setpriv
		return nil, fmt.Errorf("%w: %s; let every user execute it and enter its directory (chmod o+x)", err,
			lastLine(out.Bytes()))
	}
	return nil, fmt.Errorf("--version: %w: %s; name a redis-server or valkey-server", err, lastLine(out.Bytes()))
}
