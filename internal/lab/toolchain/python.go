package toolchain

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Pip installs what the file requirements.txt, or NAME-requirements.txt, pins into lib in the directory of the program,
// so that the system does not change.
var Pip = Toolchain{
	Find: func(ctx context.Context) (Tools, error) {
		return findPython(ctx, "pip", "apt-get install python3-pip", "python3", "/usr/bin/python3")
	},
	build: func(ctx context.Context, t Tools, dir, _ string) error {
		files, err := filepath.Glob(filepath.Join(dir, "*requirements.txt"))
		if err != nil || len(files) != 1 {
			return fmt.Errorf("one file of requirements, not %q (%w)", files, err)
		}
		return download(ctx, dir, nil, t["python3"], "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"--no-input", "--no-deps", "--require-hashes", "--only-binary", ":all:",
			"--target", filepath.Join(dir, "lib"), "-r", files[0])
	},
}

// DebianPython uses Debian's package of redis-py, which is old on purpose. There is nothing to build.
var DebianPython = Toolchain{
	Find: func(ctx context.Context) (Tools, error) {
		return findPython(ctx, "redis.asyncio", "apt-get install python3-redis", "python3", "/usr/bin/python3")
	},
	build: asIs,
}

// Python is the command line of a program that Pip has built, or DebianPython.
func Python(t Tools, dir string, args ...string) []string {
	return append([]string{"env", "PYTHONPATH=" + filepath.Join(dir, "lib"), t["python3"], "-B"}, args...)
}

// findPython returns the first Python that has the module: only Debian's own Python has the modules of Debian packages,
// and PATH may have another one first.
func findPython(ctx context.Context, module, install string, candidates ...string) (Tools, error) {
	for _, candidate := range candidates {
		path, err := exec.LookPath(candidate)
		if err == nil && exec.CommandContext(ctx, path, "-c", "import "+module).Run() == nil {
			return Tools{"python3": path}, nil
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%w: no python3 with %s; %s", ErrTool, module, install)
}
