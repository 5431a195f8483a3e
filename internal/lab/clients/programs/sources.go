// Package programs has the sources of the lab's client programs, one for each client library (docs/clients.md). They
// are embedded, so that an installed slowpath can build them.
//
// The names of directories begin with "_", so that the go command ignores the modules in them. go.mod is named
// go.mod.txt, since go:embed ignores directories that are modules.
package programs

import "embed"

// Sources has the programs by language, and the protocol, which the programs in Go contain.
//
//go:embed _c _go _java _node _python _rust protocol/*.go
var Sources embed.FS
