package caller

import (
	"strings"
	"testing"

	"slowpath/internal/format"
)

// TestTally: connections that CLIENT LIST did not have count as those of their process that it had, and what unknown
// clients have makes the parts of known ones smaller.
func TestTally(t *testing.T) {
	who := func(pid int, addr, name string) Who {
		return Who{PID: pid, Process: "job", Client: Client{Addr: addr, Name: name}}
	}
	tally := Tally{Others: 400}
	tally.Add(who(1, "10.0.0.7:1", "import"), 200)
	tally.Add(who(1, "10.0.0.7:2", "report"), 100)
	tally.Add(who(1, "", ""), 250)
	tally.Add(who(2, "", ""), 40)
	tally.Add(who(3, "10.0.0.8:1", "web"), 10)
	for range 2 { // asked again it says the same
		var said []string
		for _, c := range tally.Culprits(func(p Part) string { return format.Percent(p.Share) }) {
			said = append(said, c.ClientName+" "+c.What)
		}
		if got := strings.Join(said, ", "); got != "import 45 %, report 10 %" {
			t.Errorf("%s", got)
		}
	}
}
