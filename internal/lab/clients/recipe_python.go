package clients

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

func pythonSource(name Name) (source, error) {
	return gather([2]string{"", "_python/program.py"}, [2]string{"", "_python/" + string(name) + ".py"})
}

// pipPackage installs the library into the directory of the program, so that the system does not change.
var pipPackage = recipe{
	source: func(name Name) (source, error) {
		s, err := pythonSource(name)
		if err == nil {
			err = s.add("", "_python/"+string(name)+"-requirements.txt")
		}
		return s, err
	},
	find: func(ctx context.Context) (tools, error) {
		return findPython(ctx, "pip", "apt-get install python3-pip", "python3", "/usr/bin/python3")
	},
	build: func(ctx context.Context, t tools, dir string, name Name) error {
		return download(ctx, dir, nil, t["python3"], "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"--no-input", "--no-deps", "--require-hashes", "--only-binary", ":all:",
			"--target", filepath.Join(dir, "lib"), "-r", string(name)+"-requirements.txt")
	},
	argv: func(t tools, dir string, name Name) []string {
		return []string{
			"env", "PYTHONPATH=" + filepath.Join(dir, "lib"), t["python3"], "-B", filepath.Join(dir,
				string(name)+".py"),
		}
	},
}

// debianPython uses Debian's package of redis-py, which is old on purpose. There is nothing to build.
var debianPython = recipe{
	source: pythonSource,
	find: func(ctx context.Context) (tools, error) {
		return findPython(ctx, "redis.asyncio", "apt-get install python3-redis", "python3", "/usr/bin/python3")
	},
	build: func(context.Context, tools, string, Name) error { return nil },
	argv: func(t tools, dir string, name Name) []string {
		return []string{t["python3"], "-B", filepath.Join(dir, string(name)+".py")}
	},
}

// findPython returns the first Python that has the module: only Debian's own Python has the modules of Debian packages,
// and PATH may have another one first.
func findPython(ctx context.Context, module, install string, candidates ...string) (tools, error) {
	for _, candidate := range candidates {
		path, err := exec.LookPath(candidate)
		if err == nil && exec.CommandContext(ctx, path, "-c", "import "+module).Run() == nil {
			return tools{"python3": path}, nil
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%w: no python3 with %s; %s", ErrTool, module, install)
}
