//go:build linux

package tap

import (
	"debug/elf"
	"encoding/hex"
	"strings"
	"testing"
)

// get is what Go 1.26 makes of a function with an array of 300 bytes that calls another one, 32 bytes (x86) or 48 bytes
// (arm64) before it, and checks its error.
var get = map[elf.Machine]string{
	elf.EM_X86_64: "4c8da42440ffffff 4d3b6610 0f86bf000000 55 4889e5 4881ec38010000 4889842448010000 e8d0ffffff " +
		"4885c0 7538 488b842448010000 4881c438010000 5d c3",
	// words in the order in which they are written down, not that of memory
	elf.EM_AARCH64: "f9400b90 d10343f1 eb10023f 54000649 d10543f4 a93ffa9d 97ffffee f940afe1 b50001e0 d65f03c0",
}

func code(t *testing.T, machine elf.Machine, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	if machine == elf.EM_AARCH64 {
		for i := 0; i < len(b); i += 4 {
			b[i], b[i+1], b[i+2], b[i+3] = b[i+3], b[i+2], b[i+1], b[i]
		}
	}
	return b
}

// TestJumpsOfGoCode: hooks are at jumps, which the kernel carries out itself, after what they tell has happened.
func TestJumpsOfGoCode(t *testing.T) {
	for _, tt := range []struct {
		machine      elf.Machine
		callee       int64
		entry, after int
	}{
		{elf.EM_X86_64, -6, 12, 45},
		{elf.EM_AARCH64, -48, 12, 32},
	} {
		t.Run(tt.machine.String(), func(t *testing.T) {
			c := code(t, tt.machine, get[tt.machine])
			if at, ok := stackCheck(tt.machine, c); !ok || at != tt.entry {
				t.Errorf("the check of the stack jumps at %d, %v", at, ok)
			}
			if at, ok := jumpAfterCall(tt.machine, c, tt.callee); !ok || at != tt.after {
				t.Errorf("the check of the error jumps at %d, %v", at, ok)
			}
			if at, ok := jumpAfterCall(tt.machine, c, tt.callee+4); ok {
				t.Errorf("a call of another function was found: %d", at)
			}
			for n := range c { // cut off anywhere
				_, _ = stackCheck(tt.machine, c[:n])
				_, _ = jumpAfterCall(tt.machine, c[:n], tt.callee)
			}
		})
	}
}

// TestCodeThatIsNotHooked: what does not look like code of the Go compiler with g in a register.
func TestCodeThatIsNotHooked(t *testing.T) {
	for name, text := range map[string]string{
		"Go 1.16, g by FS": "64488b0c25f8ffffff 483b6110 0f8600010000",
		"C":                "55 4889e5 4883ec10 7605 c3",
		"no jump":          "493b6610 c3",
		"nothing":          "",
	} {
		if at, ok := stackCheck(elf.EM_X86_64, code(t, elf.EM_X86_64, text)); ok {
			t.Errorf("%s: hooked at %d", name, at)
		}
	}
	if at, ok := stackCheck(elf.EM_PPC64, code(t, elf.EM_X86_64, get[elf.EM_X86_64])); ok {
		t.Errorf("another machine: hooked at %d", at)
	}
	// the error is checked by code that is not known: another call comes first
	unchecked := "e8d0ffffff e800000000 4885c0 7538"
	if at, ok := jumpAfterCall(elf.EM_X86_64, code(t, elf.EM_X86_64, unchecked), -43); ok {
		t.Errorf("hooked at %d", at)
	}
}

// TestPlacesOfLocks: locks are found in what this compiler makes of its runtime.
func TestPlacesOfLocks(t *testing.T) {
	own, err := elf.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	functions, err := goFunctions(own)
	if err != nil {
		t.Fatal(err)
	}
	h := goHooks{file: own, functions: functions}
	if err := h.addLocks(); err != nil {
		t.Fatal(err)
	}
	waits, woken, given := 0, 0, 0
	for _, hook := range h.at.Cookies {
		switch kernelGoHook(hook) {
		case kernelGoHookGO_LOCK:
			waits++
		case kernelGoHookGO_WOKEN:
			woken++
		case kernelGoHookGO_UNLOCK:
			given++
		}
	}
	if waits < 2 || woken != 1 || given != 1 { // of sync.Mutex and sync.RWMutex
		t.Errorf("%d places where goroutines wait for a lock, %d where they are woken, %d where it is given back",
			waits, woken, given)
	}
}
