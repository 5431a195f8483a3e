package toolchain

import (
	"context"
	"fmt"
	"os/exec"
)

// Ruby runs programs on gems of Debian packages: check is a statement that fails without them. There is nothing to
// build.
func Ruby(check, packages string, programs ...string) Toolchain {
	return Toolchain{
		Find: func(ctx context.Context) (Tools, error) {
			return findWith(ctx, packages, append([]string{"ruby"}, programs...), "-e", check)
		},
		build: asIs,
	}
}

// PHP runs programs on PHP with a file or an extension of Debian packages: check is a statement that fails without
// them. There is nothing to build.
func PHP(check, packages string) Toolchain {
	return Toolchain{
		Find: func(ctx context.Context) (Tools, error) {
			return findWith(ctx, packages, []string{"php"}, "-r", check)
		},
		build: asIs,
	}
}

// findWith finds programs in PATH, of which the first succeeds with these arguments if the Debian packages are
// installed.
func findWith(ctx context.Context, packages string, programs []string, args ...string) (Tools, error) {
	install := "apt-get install " + packages
	t, err := inPath(install, programs...)
	if err != nil {
		return nil, err
	}
	if err := exec.CommandContext(ctx, t[programs[0]], args...).Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %s %s fails; %s", ErrTool, programs[0], args[len(args)-1], install)
	}
	return t, nil
}

// HiredisC compiles a program in C with Debian's hiredis and cJSON.
var HiredisC = Toolchain{
	Find: func(ctx context.Context) (Tools, error) {
		const install = "apt-get install gcc libc6-dev libhiredis-dev libcjson-dev"
		t, err := inPath(install, "gcc")
		if err != nil {
			return nil, err
		}
		if run(ctx, "", nil, t["gcc"], "-fsyntax-only", "-include", "hiredis/hiredis.h", "-include",
			"cjson/cJSON.h", "-x", "c", "/dev/null") != nil {
			return nil, fmt.Errorf("%w: no hiredis/hiredis.h or cjson/cJSON.h; %s", ErrTool, install)
		}
		return t, nil
	},
	build: func(ctx context.Context, t Tools, dir, name string) error {
		return run(ctx, dir, nil, t["gcc"], "-std=gnu11", "-O2", "-Wall", "-Wextra", "-o", name, "main.c",
			"-lhiredis", "-lcjson", "-lm")
	},
}
