package recording

import (
	"slices"
	"strings"
)

// blockingCommands wait for others by design: their wait is neither slow nor usual. XREAD and XREADGROUP wait with the
// option BLOCK only. The tap tells those apart, and sees no calls in the messages of subscribers.
var blockingCommands = strings.Fields(
	"BLPOP BRPOP BRPOPLPUSH BLMOVE BLMPOP BZPOPMIN BZPOPMAX BZMPOP XREAD XREADGROUP WAIT WAITAOF")

// BlockingCommands are the commands that wait for others by design.
func BlockingCommands() []string { return slices.Clone(blockingCommands) }

// MayBlock reports whether a command waits by design: one of BlockingCommands, in any case, with what may follow it.
func MayBlock(op string) bool {
	name, _, _ := strings.Cut(strings.ToUpper(op), " ")
	return slices.Contains(blockingCommands, name)
}
