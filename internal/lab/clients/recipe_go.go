package clients

import (
	"context"
	"path/filepath"
)

// goModule builds a program with the go command of the host, which downloads the modules.
var goModule = recipe{
	source: func(name Name) (source, error) {
		return gather([2]string{"", "_go/program"}, [2]string{"", "_go/" + string(name)},
			[2]string{"protocol", "protocol"})
	},
	find: func(context.Context) (tools, error) { return inPath("Go 1.26 or newer is at https://go.dev/dl/", "go") },
	build: func(ctx context.Context, t tools, dir string, name Name) error {
		if err := download(ctx, dir, goEnv, t["go"], "mod", "download"); err != nil {
			return err
		}
		return run(ctx, dir, goEnv, t["go"], "build", "-trimpath", "-buildvcs=false", "-o", string(name), ".")
	},
	argv: func(_ tools, dir string, name Name) []string { return []string{filepath.Join(dir, string(name))} },
}

// goEnv makes the build independent of the user's settings; go.mod and go.sum pin the versions.
var goEnv = []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly"}
