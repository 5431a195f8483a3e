// Package appsources has the sources of the lab's applications, one directory for each (docs/apps.md). They are
// embedded, so that an installed slowpath can build them.
//
// The names of directories begin with "_", so that the go command ignores the modules in them. go.mod is named
// go.mod.txt, since go:embed ignores directories that are modules.
package appsources

import "embed"

// Sources has the applications by language, and the meter, which the applications in Go contain.
//
//go:embed _c _go _java _node _php _python _ruby _rust meter/*.go
var Sources embed.FS
