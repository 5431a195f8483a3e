package verdict_test

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
)

// checkText reads the text of a verdict as a person does, at two widths: no two places of it say different things of
// the same.
func checkText(t *testing.T, key string, d verdict.Diagnosis) {
	t.Helper()
	for _, width := range []int{40, 80, 160} {
		var b bytes.Buffer
		if err := report.Text(&b, d, layout.Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprint(key, " at ", width)
		s := readText(b.String())
		s.checkHeadline(t, key, d)
		s.checkBars(t, key, d)
		s.checkTable(t, key, d)
		s.checkCalls(t, key, d)
	}
	checkStalls(t, key, d)
	checkOwnWork(t, key, d)
}

// shownText is what a text says, in its own rounding.
type shownText struct {
	headline      string
	shares        []float64          // of the findings
	bars          map[string]float64 // by state; "" is the sum of the smaller ones
	heads         []string           // of the table
	rows          [][]float64        // of the table; NaN where a cell says nothing
	worst         []string           // their lines of facts
	worstRecorded bool               // they are those that were recorded
}

var (
	percentText = regexp.MustCompile(`[\d.]+ %`)
	ofLost      = regexp.MustCompile(`([\d.]+) % of the lost time`)
	barText     = regexp.MustCompile(`^  [#]+ +\S+ \S+ +([\d.]+) %$|^  (\S.*?) +#+ +\S+ \S+ +([\d.]+) %`)
	restText    = regexp.MustCompile(`smaller parts?: .*, ([\d.]+) %`)
	wholeHead   = regexp.MustCompile(`\S+( \S+)?`)
	worstFacts  = regexp.MustCompile(`^  \d\d:\d\d:\d\d\.\d{3} UTC`)
)

// readText reads the sections of a text.
func readText(text string) shownText {
	s := shownText{bars: map[string]float64{}}
	sections := strings.Split(text, "\n\n")
	s.headline = strings.Join(strings.Fields(sections[0]), " ")
	for _, section := range sections {
		oneLine := strings.Join(strings.Fields(section), " ")
		lines := strings.Split(section, "\n")
		switch {
		case strings.HasPrefix(oneLine, "Where the "):
			s.readBars(lines, oneLine)
		case regexp.MustCompile(`^\d+\. `).MatchString(oneLine):
			if m := ofLost.FindStringSubmatch(oneLine); m != nil {
				s.shares = append(s.shares, number(m[1]))
			}
		case strings.HasPrefix(oneLine, "Which finding explains"):
			s.readTable(lines)
		case strings.HasPrefix(oneLine, "The worst"):
			s.worstRecorded = strings.Contains(oneLine, "recorded")
			fallthrough
		default:
			for i, line := range lines {
				if worstFacts.MatchString(line) {
					s.worst = append(s.worst, strings.Join(strings.Fields(strings.Join(lines[i:], " ")), " "))
				}
			}
		}
	}
	return s
}

func number(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// readBars reads the bars: of each state one line, or one with its name and one with its bar.
func (s *shownText) readBars(lines []string, oneLine string) {
	name := ""
	for _, line := range lines {
		m := barText.FindStringSubmatch(line)
		switch {
		case m == nil:
			name, _, _ = strings.Cut(strings.TrimSpace(line), " - ")
		case m[2] != "":
			s.bars[m[2]] = number(m[3])
		default:
			s.bars[name] = number(m[1])
		}
	}
	if m := restText.FindStringSubmatch(oneLine); m != nil {
		s.bars[""] = number(m[1])
	}
}

// readTable reads the table of the lost time. Its columns end where their heads do.
func (s *shownText) readTable(lines []string) {
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasSuffix(l, " all") })
	if at < 1 {
		return
	}
	ends := wholeHead.FindAllStringIndex(lines[at], -1)
	for _, e := range ends {
		over := lines[at-1]
		if !strings.HasPrefix(over, "  ") {
			over = "" // the title: each name has one word
		}
		above := over[min(e[0], len(over)):min(e[1], len(over))]
		for i := min(e[0], len(over)); i > 0 && above != "" && over[i-1] != ' '; i-- {
			above = over[i-1:i] + above
		}
		s.heads = append(s.heads, strings.TrimSpace(strings.TrimSpace(above)+" "+lines[at][e[0]:e[1]]))
	}
	for _, line := range lines[at+1:] {
		if len(line) != len(lines[at]) {
			break
		}
		var row []float64
		for _, e := range ends {
			cell := strings.Fields(line[:e[1]])
			v := 0.0
			if n := len(cell); n > 1 && cell[n-1] == "%" {
				v = number(cell[n-2])
			}
			row = append(row, v)
		}
		if s.rows = append(s.rows, row); strings.HasPrefix(line, "  all ") {
			break // below are the notes
		}
	}
}

// nearly reports whether two percentages are the same, each rounded by itself: below 10 to a tenth, else to a whole.
// parts is of how many such one is a sum.
func nearly(a, b float64, parts int) bool { return math.Abs(a-b) <= 0.5*float64(parts)+0.06 }

// checkHeadline checks that the headline says what the first finding, and the table, say, and at which nodes.
func (s shownText) checkHeadline(t *testing.T, key string, d verdict.Diagnosis) {
	t.Helper()
	if d.Verdict != verdict.Findings {
		return
	}
	if len(s.shares) != len(d.Findings) {
		t.Fatalf("%s: %d shares of %d findings", key, len(s.shares), len(d.Findings))
	}
	said := percentText.FindString(s.headline[strings.Index(s.headline, "This explains"):])
	if share := number(strings.TrimSuffix(said, " %")); share != s.shares[0] {
		t.Errorf("%s: the headline says %v %%, the first finding %v %%", key, share, s.shares[0])
	}
	f := d.Findings[0]
	if len(d.Target.Nodes) > 1 && len(f.Nodes) > 0 && !strings.Contains(s.headline, f.Nodes[0]) &&
		!strings.Contains(s.headline, fmt.Sprintf("(at all %d nodes)", len(d.Target.Nodes))) {
		t.Errorf("%s: %q does not name one of %v", key, s.headline, f.Nodes)
	}
}

// checkBars checks that the bars are all of the lost time.
func (s shownText) checkBars(t *testing.T, key string, d verdict.Diagnosis) {
	t.Helper()
	if len(s.bars) == 0 {
		if d.Verdict != verdict.Healthy && d.Excess.Ns > 0 {
			t.Errorf("%s: no bars of %d ns", key, d.Excess.Ns)
		}
		return
	}
	sum := 0.0
	for _, v := range s.bars {
		sum += v
	}
	if !nearly(sum, 100, len(s.bars)) {
		t.Errorf("%s: the bars add up to %v %%: %v", key, sum, s.bars)
	}
}

// checkTable checks that the table says what the findings and the bars say, and that it adds up.
func (s shownText) checkTable(t *testing.T, key string, d verdict.Diagnosis) {
	t.Helper()
	if s.rows == nil {
		if len(d.Findings) > 1 {
			t.Errorf("%s: no table of %d findings", key, len(d.Findings))
		}
		return
	}
	if len(s.rows) != len(s.shares)+2 {
		t.Fatalf("%s: %d rows for %d findings: %v", key, len(s.rows), len(s.shares), s.rows)
	}
	for i, row := range s.rows {
		last, sum := len(row)-1, 0.0
		for _, v := range row[:last] {
			sum += v
		}
		if !nearly(sum, row[last], last+1) {
			t.Errorf("%s: row %d adds up to %v: %v", key, i+1, sum, row)
		}
		if i < len(s.shares) && !nearly(s.shares[i], row[last], 0) {
			t.Errorf("%s: finding %d explains %v %%, its row %v %%", key, i+1, s.shares[i], row[last])
		}
	}
	for k, head := range s.heads {
		all := s.rows[len(s.rows)-1][k]
		for i, row := range s.rows[:len(s.rows)-1] {
			if row[k] > all+0.51 {
				t.Errorf("%s: row %d has %v %% of the %v %% in %q", key, i+1, row[k], all, head)
			}
		}
		if share, ok := s.bars[head]; ok && !nearly(share, all, 0) {
			t.Errorf("%s: %q has %v %% in the bars, %v %% in the table", key, head, share, all)
		}
	}
}

// checkCalls checks that the first of the worst calls is the worst of all, unless the text says that others were not
// recorded.
func (s shownText) checkCalls(t *testing.T, key string, d verdict.Diagnosis) {
	t.Helper()
	worst := int64(0)
	for _, p := range d.Populations {
		worst = max(worst, p.MaxNs)
	}
	if len(s.worst) != 0 && len(s.worst) != len(d.Worst) {
		t.Errorf("%s: %d worst calls shown of %d: %q", key, len(s.worst), len(d.Worst), s.worst)
	}
	if len(s.worst) == 0 || s.worstRecorded {
		return
	}
	if w := d.Worst[0]; w.Ns-w.OwnDelayNs != worst {
		t.Errorf("%s: the worst call took %s, the first of the worst is %q", key, time.Duration(worst), s.worst[0])
	}
}

// checkStalls checks that no stall is shown twice: two calls that waited at the same time, most of their time for the
// same server or client.
func checkStalls(t *testing.T, key string, d verdict.Diagnosis) {
	t.Helper()
	for i, a := range d.Worst {
		for _, b := range d.Worst[:i] {
			from, to := max(a.Time.UnixNano(), b.Time.UnixNano()), min(a.Time.UnixNano()+a.Ns, b.Time.UnixNano()+b.Ns)
			if with := mostlyWith(a); with != "" && with == mostlyWith(b) && 10*(to-from) > 9*min(a.Ns, b.Ns) {
				t.Errorf("%s: %s at %s and %s at %s both waited for %s", key, b.Op, b.Time, a.Op, a.Time, with)
			}
		}
	}
}

// mostlyWith is the server or the client that a call waited for in most of its time.
func mostlyWith(w verdict.Worst) string {
	with := map[string]int64{}
	for _, p := range w.Segments {
		switch {
		case p.Actor == recording.Client && w.Client != "":
			with[w.Client] += p.ToNs - p.FromNs
		case (p.Actor == recording.Server || p.Actor == recording.Proxy) && p.State != recording.Send:
			if p.State == recording.Exec && p.Culprit == "" {
				continue // its own work
			}
			node := p.Node
			if node == "" {
				node = w.Node
			}
			with["the server at "+node] += p.ToNs - p.FromNs
		}
	}
	for who, ns := range with {
		if 2*ns > w.Ns {
			return who
		}
	}
	return ""
}

var waitedFor = regexp.MustCompile(`([\d ]+) of ([\d ]+) slow calls? waited for ([A-Z][A-Z ]+[A-Z])\b`)

// checkOwnWork checks that no command is said to wait for itself: neither one of the worst calls, nor all slow calls
// where some of these are that command.
func checkOwnWork(t *testing.T, key string, d verdict.Diagnosis) {
	t.Helper()
	for _, f := range d.Findings {
		for _, e := range f.Evidence {
			m := waitedFor.FindStringSubmatch(e.Text)
			if m == nil || m[1] != m[2] {
				continue
			}
			if i := slices.IndexFunc(d.Worst, func(w verdict.Worst) bool { return didItself(w, m[3]) }); i >= 0 {
				t.Errorf("%s: %q, and the slow call at %s is %s", key, e.Text, d.Worst[i].Time, m[3])
			}
		}
	}
}

// didItself reports whether a call is a command that took its time by its own work.
func didItself(w verdict.Worst, command string) bool {
	return w.Op == command && slices.ContainsFunc(w.Segments, func(p verdict.Part) bool {
		return p.Actor == recording.Server && p.State == recording.Exec && 2*(p.ToNs-p.FromNs) > w.Ns
	})
}
