package toolchain

import (
	"context"
	"fmt"
)

// Node installs what package-lock.json pins into the directory of the program.
var Node = Toolchain{
	Find: func(ctx context.Context) (Tools, error) {
		const install = "Node 20 or newer with npm: https://nodejs.org/, or on Debian 13 or newer apt-get install " +
			"nodejs npm"
		t, err := inPath(install, "node", "npm")
		if err != nil {
			return nil, err
		}
		// The libraries declare "engines": node >= 20; an older Node fails with a syntax error.
		if run(ctx, "", nil, t["node"], "-e",
			`process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)`) != nil {
			return nil, fmt.Errorf("%w: %s is too old; %s", ErrTool, t["node"], install)
		}
		return t, nil
	},
	build: func(ctx context.Context, t Tools, dir, _ string) error {
		return download(ctx, dir, nil, t["npm"], "ci", "--ignore-scripts", "--no-audit", "--no-fund",
			"--loglevel=error")
	},
}
