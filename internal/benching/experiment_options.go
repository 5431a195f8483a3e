//go:build linux

package benching

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/load/experiment"
)

// Experiment are the flags of bench that make more than one load.
type Experiment struct {
	Sweep, FindMax, Compare string
	Targets                 bool
	HTML                    string
	Gain, Precision         string
	Repeat, Confirm         int
	Warmup                  time.Duration
	Given                   *pflag.FlagSet

	axis       experiment.Axis
	limit      experiment.Limit
	gainShare  float64
	closeness  float64
	baseline   *experiment.Baseline
	eachLasts  time.Duration
	startsWith float64 // calls per second of the first load of --find-max
}

// asked reports whether more than one load is to be made.
func (f *Experiment) asked() bool {
	return f.Sweep != "" || f.FindMax != "" || f.Repeat > 0 || f.Compare != "" || f.Targets
}

// How long each load of an experiment is, unless --for says it: short ones for many values, longer ones where quantiles
// are held to a limit.
const (
	sweepLasts   = 2 * time.Second
	findMaxLasts = 5 * time.Second
	repeatLasts  = 5 * time.Second
	targetLasts  = 2 * time.Second
)

const (
	sweepRepeats   = 3
	compareRepeats = 6 // as many as a median with an interval takes
	mostRepeats    = 1000
	targetRounds   = 6   // as many as a median with an interval takes
	mostRounds     = 100 // comparing pairs takes their number to the power of three
	mostConfirm    = 99
	firstPerSecond = 1000 // of --find-max without --rate
	// mostResultsBytes bounds --compare; mostRepeats loads of a minute take 20 MB
	mostResultsBytes = 64_000_000
)

// check reads the flags, and sets of those of the load what they have left open.
func (f *Experiment) check(b *Options) error {
	if f.Given.Changed("repeat") && (f.Repeat < 1 || f.Repeat > mostRepeats) {
		return cli.Usagef("--repeat %d: give 1 to %d", f.Repeat, mostRepeats)
	}
	if err := f.checkAlone(); err != nil || !f.asked() {
		return err
	}
	if err := cli.NotNegative("warmup", f.Warmup); err != nil {
		return err
	}
	var err error
	switch {
	case f.Sweep != "":
		err = f.checkSweep(b)
	case f.FindMax != "":
		err = f.checkFindMax(b)
	case f.Targets:
		err = f.checkTargets(b)
	default:
		err = f.checkRepeats(b)
	}
	f.eachLasts = b.Load.Duration
	return err
}

// checkAlone refuses flags that do not go together.
func (f *Experiment) checkAlone() error {
	given := func(names ...string) string {
		i := slices.IndexFunc(names, f.Given.Changed)
		if i < 0 {
			return ""
		}
		return names[i]
	}
	for _, rule := range []struct {
		with    string
		without []string
		why     string
	}{
		{"sweep", []string{"find-max", "compare"}, "each is an experiment of its own"},
		{"find-max", []string{"compare", "repeat"}, "each is an experiment of its own"},
		{"sweep", []string{"requests", "ramp", "schedule"}, "--for says how long each load is"},
		{"compare-targets", []string{"sweep", "find-max", "compare"}, "each is an experiment of its own"},
		{"compare-targets", []string{"requests", "ramp", "schedule", "start-at"}, "--for says how long each load is"},
		{"fail-if", []string{"sweep", "find-max", "compare-targets"}, "it is for one load, --repeat and --compare"},
		{"summary", []string{"sweep", "find-max", "compare-targets"}, "it is for one load, --repeat and --compare"},
		{"compare-targets", []string{"replay"}, "it compares with a load that is made anew for each: --command"},
		{"find-max", []string{"requests", "ramp", "schedule"}, "it sets the rate itself, and --for says how long " +
			"each load is"},
	} {
		if other := given(rule.without...); other != "" && f.Given.Changed(rule.with) {
			return cli.Usagef("--%s does not go with --%s: %s", rule.with, other, rule.why)
		}
	}
	if other := given("csv", "hlog", "record"); other != "" && f.asked() {
		return cli.Usagef("--%s is for one load: leave out --sweep, --find-max, --repeat, --compare and "+
			"--compare-targets", other)
	}
	if f.Given.Changed("verify") && f.asked() {
		return cli.Usagef("--verify is for one load, since each of an experiment draws its values anew: leave out " +
			"--sweep, --find-max, --repeat, --compare and --compare-targets")
	}
	for flag, needs := range map[string]string{
		"gain": "sweep", "precision": "find-max", "confirm": "find-max", "html": "compare-targets",
	} {
		if f.Given.Changed(flag) && !f.Given.Changed(needs) {
			return cli.Usagef("--%s is for --%s: add it, or leave this out", flag, needs)
		}
	}
	if f.Given.Changed("warmup") && !f.asked() {
		return cli.Usagef("--warmup is for --sweep, --find-max, --repeat, --compare and --compare-targets: add " +
			"one of them, or leave it out")
	}
	return nil
}

func (f *Experiment) checkSweep(b *Options) (err error) {
	if f.axis, err = experiment.ParseAxis(f.Sweep); err != nil {
		return cli.Usagef("--sweep %w", err)
	}
	if f.gainShare, err = parseShare(f.Gain); err != nil {
		return cli.Usagef("--gain %q: %w", f.Gain, err)
	}
	if f.axis.Name == experiment.Rate && b.Rate != "" {
		return cli.Usagef("--sweep rate=… sets the rate itself: leave out --rate")
	}
	if f.axis.Name == experiment.Connections || f.axis.Name == experiment.Pipeline ||
		f.axis.Name == experiment.Threads {
		if b.Rate != "" {
			return cli.Usagef("--sweep %s=… asks how fast the server goes, and --rate sets that: leave out --rate",
				f.axis.Name)
		}
	}
	f.Repeat = cmp.Or(f.Repeat, sweepRepeats)
	b.Load.Duration = cmp.Or(b.Load.Duration, sweepLasts)
	for _, v := range f.axis.Values { // refused now, and not half way
		one := f.at(*b, v)
		if _, err := one.options(); err != nil {
			return err
		}
	}
	return nil
}

// at is the flags with a value of the axis.
func (f *Experiment) at(b Options, value int) Options {
	switch f.axis.Name {
	case experiment.Connections:
		b.Load.Connections = value
	case experiment.Pipeline:
		b.Load.Pipeline = value
	case experiment.Threads:
		b.Load.Threads = value
	case experiment.Rate:
		b.Rate = strconv.Itoa(value)
	case experiment.ValueSize:
		b.Work.Size = strconv.Itoa(value)
	}
	return b
}

func (f *Experiment) checkFindMax(b *Options) (err error) {
	if f.limit, err = experiment.ParseLimit(f.FindMax); err != nil {
		return cli.Usagef("--find-max %w", err)
	}
	if f.closeness, err = parseShare(f.Precision); err != nil {
		return cli.Usagef("--precision %q: %w", f.Precision, err)
	}
	if f.Confirm < 1 || f.Confirm > mostConfirm {
		return cli.Usagef("--confirm %d: give 1 to %d", f.Confirm, mostConfirm)
	}
	f.startsWith = firstPerSecond
	if b.Rate != "" {
		if f.startsWith, err = parseLoadRate(b.Rate); err != nil {
			return cli.Usagef("--rate %q: %w", b.Rate, err)
		}
	}
	b.Rate = strconv.FormatFloat(f.startsWith, 'f', -1, 64)
	b.Load.Duration = cmp.Or(b.Load.Duration, findMaxLasts)
	return nil
}

func (f *Experiment) checkTargets(b *Options) error {
	b.Load.Duration = cmp.Or(b.Load.Duration, targetLasts)
	if f.Repeat = cmp.Or(f.Repeat, targetRounds); f.Repeat > mostRounds {
		return cli.Usagef("--repeat %d: give at most %d rounds", f.Repeat, mostRounds)
	}
	return nil
}

func (f *Experiment) checkRepeats(b *Options) error {
	if b.Load.Requests == 0 && b.Schedule == "" && b.Replay.File == "" {
		b.Load.Duration = cmp.Or(b.Load.Duration, repeatLasts)
	}
	if f.Compare == "" {
		return nil
	}
	body, err := cli.ReadNamed(f.Compare, mostResultsBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("no such file: %s; slowpath bench … --repeat %d --json > FILE makes one", f.Compare,
			compareRepeats)
	}
	if err != nil {
		return cli.Usagef("--compare: %w", err)
	}
	if f.baseline, err = baselineOf(f.Compare, body); err != nil {
		return cli.Usagef("--compare %s: %w", f.Compare, err)
	}
	f.Repeat = cmp.Or(f.Repeat, max(compareRepeats, min(len(f.baseline.Runs), mostRepeats)))
	return nil
}

// parseShare reads "5%" or "0.05", above 0 and below 1.
func parseShare(s string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0) || v >= 1 {
		return 0, errors.New("give a share such as 5%, above 0 and below 100%")
	}
	return v, nil
}
