// Package programs has the sources of the lab's client programs, each on a public client library (docs/clients.md).
// They are embedded, so that an installed slowpath can build them.
//
// Directories begin with "_", so that the go command passes over the modules in them, and go.mod is called go.mod.txt,
// because go:embed passes over directories that are modules of their own.
package programs

import "embed"

// Sources has the programs by language, and the protocol, which is a part of those in Go.
//
//go:embed _go _java _node _python protocol/*.go
var Sources embed.FS
