//go:build linux

package tap

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/recording"
)

// TestAdminCommandsAreTheSame: the programs and the recording know the same commands that change a server.
func TestAdminCommandsAreTheSame(t *testing.T) {
	b, err := os.ReadFile("bpf/commands.h")
	if err != nil {
		t.Fatal(err)
	}
	body := regexp.MustCompile(`(?s)bool administers\(.*?\n}`).FindString(string(b))
	body = strings.ReplaceAll(body, "CLIENT_COMMAND", "WORD('C', 'L', 'I', 'E', 'N', 'T', 0, 0)")
	var got []string
	for _, m := range regexp.MustCompile(`(case|==) WORD\((.*?)\)`).FindAllStringSubmatch(body, -1) {
		if m[1] == "case" {
			got = append(got, letters(m[2]))
			continue
		}
		last := &got[len(got)-1]
		name, _, again := strings.Cut(*last, " ")
		if again {
			got = append(got, name+" "+letters(m[2]))
		} else {
			*last += " " + letters(m[2])
		}
	}
	var want []string
	for _, c := range recording.AdminCommands() {
		name, sub, _ := strings.Cut(c, " ")
		want = append(want, strings.TrimSpace(name[:min(len(name), 8)]+" "+sub[:min(len(sub), 8)]))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("administers of bpf/commands.h has\n%q, recording.AdminCommands\n%q", got, want)
	}
}
