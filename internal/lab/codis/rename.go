//go:build linux

package codis

import (
	"fmt"
	"os"
	"path/filepath"
)

// Comm is the name of the process of the stand-in, so that nobody takes it for slowpath, or for Codis itself.
const Comm = "codis-stand-in"

// Rename gives this process the name Comm. Threads have the name of the one that made them, so that those which are
// made meanwhile get it in the next round.
func Rename() error {
	for renamed := map[string]bool{}; ; {
		threads, err := filepath.Glob("/proc/self/task/*/comm")
		if err != nil {
			return err
		}
		before := len(renamed)
		for _, t := range threads {
			if renamed[t] {
				continue
			}
			if err := os.WriteFile(t, []byte(Comm), 0); err != nil && !os.IsNotExist(err) {
				return fmt.Errorf("naming the process: %w", err)
			}
			renamed[t] = true
		}
		if len(renamed) == before {
			return nil
		}
	}
}
