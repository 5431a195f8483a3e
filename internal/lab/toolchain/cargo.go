package toolchain

import (
	"context"
	"os"
	"path/filepath"
)

// Cargo builds a crate with the cargo of the host, which downloads what Cargo.lock pins. The program has the name of
// the build.
var Cargo = Toolchain{
	Find: func(context.Context) (Tools, error) {
		return inPath("Rust 1.85 or newer: https://rustup.rs/, or on Debian 13 or newer apt-get install cargo",
			"cargo", "rustc")
	},
	build: func(ctx context.Context, t Tools, dir, name string) error {
		if err := download(ctx, dir, nil, t["cargo"], "fetch", "--locked", "--quiet"); err != nil {
			return err
		}
		if err := run(ctx, dir, nil, t["cargo"], "build", "--release", "--frozen", "--quiet"); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(dir, "target", "release", name), filepath.Join(dir, name)); err != nil {
			return err
		}
		return os.RemoveAll(filepath.Join(dir, "target")) // hundreds of megabytes that nobody needs again
	},
}
