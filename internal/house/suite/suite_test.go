package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// fakeTests answers go test: the events of all tests, and for each test that is run alone those of that run.
type fakeTests struct {
	together string
	alone    map[string]string // by test
	ran      []string
}

func (f *fakeTests) run(events io.Writer, env string, args ...string) error {
	text := f.together
	if env == "" {
		i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-run=") })
		name := strings.Trim(strings.TrimPrefix(args[i], "-run="), "^$")
		f.ran = append(f.ran, name)
		text = f.alone[name]
	}
	for line := range strings.Lines(text) {
		fmt.Fprintln(events, eventOf(strings.TrimSpace(line)))
	}
	if strings.Contains(text, "fail") {
		return errors.New("exit status 1")
	}
	return nil
}

// eventOf makes an event of "ACTION TEST [TEXT]", and of "ACTION - [TEXT]" for the package.
func eventOf(line string) string {
	f := strings.SplitN(line+"  ", " ", 3)
	if f[1] == "-" {
		f[1] = ""
	}
	text := strings.TrimSpace(f[2])
	key, value, _ := strings.Cut(text, "=")
	return fmt.Sprintf(`{"Action":%q,"Package":"slowpath/p","Test":%q,"Output":%q,"Key":%q,"Value":%q}`, f[0], f[1],
		text+"\n", key, value)
}

func TestSuite(t *testing.T) {
	for _, c := range []struct {
		name     string
		together string
		alone    map[string]string
		ran      []string // alone
		code     int
		says     []string
	}{
		{
			"all pass", "run TestA\npass TestA\npass -", nil, nil, 0, []string{"\n1 passed, 0 failed, 0 skipped\n"},
		},
		{
			"a hermetic test is never run again", "output TestA wrong\nfail TestA\nfail -", nil, nil, 1,
			[]string{"p TestA\nwrong", "\n0 passed, 1 failed, 0 skipped\n"},
		},
		{
			"a real test passes alone", "attr TestA layer=real\noutput TestA/b late\nfail TestA/b\nfail TestA\nfail -",
			map[string]string{"TestA": "attr TestA layer=real\npass TestA/b\npass TestA\npass -"},
			[]string{"TestA"},
			0,
			[]string{"late", "\nflaky: p TestA\n2 passed, 0 failed, 0 skipped\n"},
		},
		{
			"a real test fails alone, too", "attr TestA layer=real\nfail TestA\nfail -",
			map[string]string{"TestA": "attr TestA layer=real\noutput TestA still\nfail TestA\nfail -"},
			[]string{"TestA"},
			1,
			[]string{"still", "\n0 passed, 1 failed, 0 skipped\n"},
		},
		{
			"a quiet CPU", "attr TestA layer=real\nattr TestA left-to=alone\nskip TestA\npass TestB\npass -",
			map[string]string{"TestA": "attr TestA layer=real\npass TestA\npass -"},
			[]string{"TestA"},
			0,
			[]string{"\n2 passed, 0 failed, 0 skipped\n"},
		},
		{
			"other layers are no skips", "attr TestA left-to=make test-long\nskip TestA\n" +
				"output TestB x.go:1: no root\nskip TestB\npass -", nil, nil, 0,
			[]string{"no root\n    p TestB", "left to make test-long: 1 tests\n0 passed, 0 failed, 1 skipped\n"},
		},
		{
			"a binary died", "attr TestA layer=real\nrun TestA\noutput TestA panic: oh\nfail TestA\n" +
				"run TestB\nfail -", nil, nil, 1,
			[]string{"panic: oh", "\n0 passed, 2 failed, 0 skipped\n"},
		},
		{
			"a test does not run again", "attr TestA layer=real\noutput TestA late\nfail TestA\nfail -",
			map[string]string{"TestA": "output - exit status 3\nfail -"},
			[]string{"TestA"},
			1,
			[]string{"p TestA\nlate", "exit status 3", "\n0 passed, 2 failed, 0 skipped\n"},
		},
		{
			"a test that is skipped alone has not passed", "attr TestA layer=real\nfail TestA\nfail -",
			map[string]string{"TestA": "attr TestA layer=real\nskip TestA\npass -"},
			[]string{"TestA"},
			1,
			[]string{" 1 failed, "},
		},
		{
			"a quiet test does not run", "attr TestA left-to=alone\nskip TestA\npass -",
			map[string]string{"TestA": "pass -"},
			[]string{"TestA"},
			1,
			[]string{"p TestA", "\n0 passed, 1 failed, 0 skipped\n"},
		},
		{
			"a binary that ends by itself is not hidden by a later run",
			"run TestA\nattr TestB left-to=alone\nskip TestB\noutput - exit status 3\nfail -",
			map[string]string{"TestB": "pass TestB\npass -"},
			[]string{"TestB"},
			1,
			[]string{"p TestA", "\n1 passed, 1 failed, 0 skipped\n"},
		},
		{
			"a package does not build", "output - undefined: x\nfail -", nil, nil, 1,
			[]string{"undefined: x", "\n0 passed, 1 failed, 0 skipped\n"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tests := fakeTests{together: c.together, alone: c.alone}
			var out strings.Builder
			code := suite{run: tests.run, log: io.Discard, out: &out, args: []string{"./..."}}.all()
			if code != c.code || !slices.Equal(tests.ran, c.ran) {
				t.Errorf("exit code %d, want %d; alone %v, want %v", code, c.code, tests.ran, c.ran)
			}
			for _, want := range c.says {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
		})
	}
}
