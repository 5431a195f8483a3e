package cause

import (
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/recording"
)

// fetchers says which library fetches the map, by its name or by what its process does, and whether calls wait for it.
func fetchers(in nodes.InlineFetch) (source, text string) {
	library, does, is := in.Library, ": the call waits for it", ", where the call waits for the map"
	if library == "" {
		library, does = in.ConcurrentLibrary, ", in the background: no call waits for it"
		is = ", which fetches the map in the background: no call waits for it"
	}
	if in.Guessed {
		return recording.SourceTap, "the callers fetch the map as " + library + " does" + does
	}
	return in.Fetchers.Source, in.Fetchers.KnownFrom + ": the library is " + library + is
}
