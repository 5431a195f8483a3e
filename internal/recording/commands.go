package recording

import "strings"

// BlockingCommands are the commands that wait for others by design: their wait is neither slow nor usual. XREAD and
// XREADGROUP wait with the option BLOCK only. The tap tells those apart, and sees no calls in the messages of
// subscribers.
const BlockingCommands = "BLPOP BRPOP BRPOPLPUSH BLMOVE BLMPOP BZPOPMIN BZPOPMAX BZMPOP XREAD XREADGROUP WAIT WAITAOF"

var blockingCommands = func() map[string]bool {
	m := map[string]bool{}
	for _, name := range strings.Fields(BlockingCommands) {
		m[name] = true
	}
	return m
}()

// MayBlock reports whether a command waits by design: one of BlockingCommands, in any case, with what may follow it.
func MayBlock(op string) bool {
	name, _, _ := strings.Cut(strings.ToUpper(op), " ")
	return blockingCommands[name]
}
