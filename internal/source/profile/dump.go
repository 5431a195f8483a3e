package profile

import (
	"strings"

	"slowpath/internal/source/profile/stacks"
)

// Bounds of a thread dump.
const (
	maxThreads    = 20_000
	maxDumpFrames = 1024
)

// parseDump reads the thread dump of a JVM, as jstack and jcmd Thread.print give it: of each thread its frames. Names
// of threads and objects are left out. Threads without Java frames are the JVM's own.
func parseDump(text string) *stacks.Profile {
	p := &stacks.Profile{Types: []stacks.Type{{Name: "threads", Unit: "count"}}}
	counts := map[string]int{} // index in p.Stacks by its frames
	var frames []string
	end := func() {
		if len(frames) == 0 {
			return
		}
		for i, j := 0, len(frames)-1; i < j; i, j = i+1, j-1 { // the dump has where the thread is first
			frames[i], frames[j] = frames[j], frames[i]
		}
		key := strings.Join(frames, "\n")
		at, known := counts[key]
		if !known {
			at = len(p.Stacks)
			counts[key] = at
			p.Stacks = append(p.Stacks, stacks.Stack{Frames: frames, Values: []int64{0}})
		}
		p.Stacks[at].Values[0]++
		frames = nil
	}
	threads := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\"") || strings.TrimSpace(line) == "" {
			end()
			if threads++; threads > 2*maxThreads {
				break
			}
			continue
		}
		if f, ok := javaFrame(line); ok && len(frames) < maxDumpFrames {
			frames = append(frames, f)
		}
	}
	end()
	return p
}

// javaFrame reads " at java.base/java.lang.Thread.run(java.base@17.0.15/Thread.java:840)". The module is left out:
// before 9 there was none.
func javaFrame(line string) (string, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "at ")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "(")
	if i := strings.LastIndexByte(name, '/'); i >= 0 && !strings.Contains(name, "$$Lambda") {
		name = name[i+1:]
	}
	return name, ok && strings.Contains(name, ".") && len(name) < 500
}
