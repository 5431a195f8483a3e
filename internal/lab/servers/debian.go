package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// suite is a Debian release, and what its servers need to run on other releases.
type suite struct {
	name    string
	mirrors []string // tried in order
	libs    []string // packages with the shared libraries of the server
	loader  bool     // also download libc6 and start the server with its ld.so, for a glibc newer than the host's
}

const mirror = "http://deb.debian.org/debian" // packages are verified by the archive's signature, so http is enough

var (
	// bullseye's glibc (2.31) has no --argv0, but every newer host runs its binaries.
	bullseye = suite{
		name: "bullseye", mirrors: []string{mirror, "http://archive.debian.org/debian"},
		libs: []string{
			"libssl1.1", "liblua5.1-0", "lua-cjson", "lua-bitop", "libjemalloc2", "liblzf1", "libsystemd0",
			"libatomic1",
			"liblzma5", "libzstd1", "liblz4-1", "libgcrypt20", "libgpg-error0",
		},
	}
	bookworm = suite{
		name: "bookworm", mirrors: []string{mirror}, loader: true,
		libs: []string{
			"libc6", "libssl3", "liblua5.1-0", "lua-cjson", "lua-bitop", "libjemalloc2", "liblzf1",
			"libsystemd0", "libatomic1",
			"liblzma5", "libzstd1", "liblz4-1", "libgcrypt20", "libgpg-error0", "libcap2", "libstdc++6", "libgcc-s1",
		},
	}
	trixie = suite{
		name: "trixie", mirrors: []string{mirror}, loader: true,
		libs: []string{
			"libc6", "libssl3t64", "libjemalloc2", "liblzf1", "libsystemd0", "libatomic1", "libcap2",
			"libzstd1", "zlib1g",
			"libstdc++6", "libgcc-s1",
		},
	}
)

// keyring has the keys of bullseye, bookworm and trixie.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// debian gets a server from a package of a suite. In Debian the server is the file PRODUCT-check-rdb: redis-server is a
// link to it, in another package, and argv[0] decides.
func debian(from suite, pkg string) recipe {
	return func(ctx context.Context, s Server, j job) (manifest, error) {
		m, err := from.get(ctx, s, pkg, j)
		if err != nil {
			return m, fmt.Errorf("from Debian %s: %w", from.name, err)
		}
		return m, nil
	}
}

func (u suite) get(ctx context.Context, s Server, pkg string, j job) (manifest, error) {
	for _, t := range []tool{aptGet, dpkgDeb} {
		if _, err := t.find(); err != nil {
			return manifest{}, err
		}
	}
	if _, err := os.Stat(keyring); err != nil {
		return manifest{}, fmt.Errorf("%w: no %s; apt-get install debian-archive-keyring", ErrTool, keyring)
	}
	debs := filepath.Join(j.dir, "debs")
	if err := os.Mkdir(debs, 0o755); err != nil {
		return manifest{}, err
	}
	if err := u.download(ctx, debs, append([]string{pkg}, u.libs...), j); err != nil {
		return manifest{}, err
	}
	root := filepath.Join(j.dir, "root")
	if err := unpackDebs(ctx, debs, root); err != nil {
		return manifest{}, err
	}
	if err := os.RemoveAll(debs); err != nil {
		return manifest{}, err
	}
	return u.arrange(s, j.dir)
}

// download fetches the packages into debs. The servers of a suite share its package lists, hence the lock.
func (u suite) download(ctx context.Context, debs string, pkgs []string, j job) error {
	unlock, err := lock(ctx, filepath.Join(j.cache, ".lock-apt-"+u.name))
	if err != nil {
		return err
	}
	defer unlock()
	var failures []error
	for _, m := range u.mirrors {
		options, err := u.aptOptions(filepath.Join(j.cache, ".apt", u.name), m)
		if err != nil {
			return err
		}
		j.say("apt-get update (%s, %s)", u.name, m)
		if _, err := aptGet.run(ctx, debs, append(options, "update")...); err != nil {
			failures = append(failures, fmt.Errorf("%w: update from %s: %w", ErrRegistry, m, err))
			continue
		}
		j.say("apt-get download of %d packages", len(pkgs))
		args := append(options, "download")
		for _, p := range pkgs {
			args = append(args, p+"/"+u.name)
		}
		if _, err = aptGet.run(ctx, debs, args...); err == nil {
			return nil
		}
		failures = append(failures, fmt.Errorf("%w: download from %s: %w", ErrRegistry, m, err))
	}
	return oneLine(failures)
}

// aptOptions returns options that let apt use directories of our own, which it makes. Only the host's apt.conf
// (proxies) still applies.
func (u suite) aptOptions(dir, mirror string) ([]string, error) {
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	list := filepath.Join(dir, "sources.list")
	line := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, mirror, u.name)
	if err := os.WriteFile(list, []byte(line), 0o644); err != nil {
		return nil, err
	}
	var args []string
	for _, option := range []string{
		"Dir::Etc::sourcelist=" + list, "Dir::Etc::sourceparts=/dev/null", "Dir::Etc::preferencesparts=/dev/null",
		"Dir::State=" + filepath.Join(dir, "state"), "Dir::State::status=/dev/null", "Dir::Cache=" + filepath.Join(dir,
			"cache"),
		"Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache=", // saves 100 MB of derived files
		"Acquire::Languages=none", "Acquire::GzipIndexes=true", "Acquire::Retries=2", "Acquire::http::Timeout=30",
		"Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
		"Acquire::IndexTargets::deb::CNF::DefaultEnabled=false",
		"APT::Sandbox::User=root",           // _apt may not read a private cache
		"APT::Update::Error-Mode=any",       // a list that fails must not pass as a warning
		"APT::Update::Post-Invoke-Success=", // no hooks of the host
	} {
		args = append(args, "-o", option)
	}
	return append(args, "-q"), nil
}

func unpackDebs(ctx context.Context, debs, root string) error {
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := dpkgDeb.run(ctx, debs, "-x", f, root); err != nil {
			return fmt.Errorf("unpacking %s: %w", filepath.Base(f), err)
		}
	}
	return nil
}

// arrange finds the server, the libraries and the loader in dir/root and links bin/redis-server to what is to be
// executed.
func (u suite) arrange(s Server, dir string) (manifest, error) {
	m := manifest{Origin: "Debian " + u.name, Program: filepath.Join("bin", s.program()), Loader: u.loader}
	m.File = filepath.Join("root", "usr", "bin", s.Product+"-check-rdb")
	target := m.File
	for _, pattern := range []string{"root/lib/*-linux-gnu*", "root/usr/lib/*-linux-gnu*"} {
		m.Libs = append(m.Libs, globIn(dir, pattern)...)
	}
	if u.loader {
		loaders := globIn(dir, "root/usr/lib*/ld-linux*.so.*", "root/lib*/ld-linux*.so.*", "root/lib/*/ld-linux*.so.*",
			"root/usr/lib/*/ld-linux*.so.*")
		i := 0
		for i < len(loaders) && !resolves(filepath.Join(dir, loaders[i])) {
			i++
		}
		if i == len(loaders) {
			return m, errors.New("its libc6 has no ld-linux")
		}
		target = loaders[i]
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		return m, err
	}
	return m, os.Symlink(filepath.Join("..", target), filepath.Join(dir, m.Program))
}

// resolves returns false for a link out of the unpacked tree, such as bookworm's absolute /lib64/ld-linux-x86-64.so.2.
func resolves(path string) bool {
	target, err := os.Readlink(path)
	return err != nil || !filepath.IsAbs(target)
}

// globIn matches patterns under dir and returns paths relative to it.
func globIn(dir string, patterns ...string) []string {
	var out []string
	for _, p := range patterns {
		found, _ := filepath.Glob(filepath.Join(dir, p)) // the patterns are constants, so they are well formed
		for _, f := range found {
			out = append(out, strings.TrimPrefix(f, dir+string(filepath.Separator)))
		}
	}
	return out
}
