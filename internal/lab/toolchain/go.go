package toolchain

import "context"

// Go builds a module with the go command of the host, which downloads the modules. The program has the name of the
// build.
var Go = Toolchain{
	Find: func(context.Context) (Tools, error) { return inPath("Go 1.26 or newer is at https://go.dev/dl/", "go") },
	build: func(ctx context.Context, t Tools, dir, name string) error {
		if err := download(ctx, dir, goEnv, t["go"], "mod", "download"); err != nil {
			return err
		}
		return run(ctx, dir, goEnv, t["go"], "build", "-trimpath", "-buildvcs=false", "-o", name, ".")
	},
}

// goEnv makes the build independent of the user's settings; go.mod and go.sum pin the versions.
var goEnv = []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly"}

// Vet runs go vet on a program that was built in a directory.
func Vet(ctx context.Context, t Tools, dir string) error {
	return run(ctx, dir, goEnv, t["go"], "vet", "./...")
}
