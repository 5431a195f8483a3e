//go:build linux

package main

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

// experimentFlags are the flags of bench that make more than one load.
type experimentFlags struct {
	sweep, findMax, compare string
	targets                 bool
	html                    string
	gain, precision         string
	repeat, confirm         int
	warmup                  time.Duration
	given                   *pflag.FlagSet

	axis       experiment.Axis
	limit      experiment.Limit
	gainShare  float64
	closeness  float64
	baseline   *experiment.Baseline
	eachLasts  time.Duration
	startsWith float64 // calls per second of the first load of --find-max
}

func (f *experimentFlags) add(fl *pflag.FlagSet) {
	f.given = fl
	fl.StringVar(&f.sweep, "sweep", "", "a load at each of many values of a `setting`, and the knee: "+
		"connections=1..1000, pipeline=1,2,4,8, threads=…, rate=1000..100000/12, value-size=…")
	fl.StringVar(&f.findMax, "find-max", "", "the highest rate of an open loop that holds a `limit`: 'p99<1ms and "+
		"errors<0.1%'")
	fl.IntVar(&f.repeat, "repeat", 0, "`number` of loads that are the same: medians with intervals; with --sweep "+
		"loads per value (3), with --compare-targets rounds (6)")
	fl.StringVar(&f.compare, "compare", "", "`file` of an earlier --repeat --json: says what got faster or slower, "+
		"and what noise explains")
	fl.BoolVar(&f.targets, "compare-targets", false, "the same load on several TARGETs in turns, and one table: "+
		"servers, clusters, proxies. What each is shows by itself, or write standalone:, cluster: or proxy: before "+
		"HOST:PORT")
	fl.StringVar(&f.html, "html", "", "with --compare-targets: write the table with plots to this `file`, too, a page "+
		"for a browser")
	fl.DurationVar(&f.warmup, "warmup", 500*time.Millisecond, "how long, before each load of these, one is made "+
		"that does not count")
	fl.StringVar(&f.gain, "gain", "10%", "with --sweep: the knee is where twice as much gives less than this `share` "+
		"more throughput")
	fl.StringVar(&f.precision, "precision", "5%", "with --find-max: how near, as a `share`, a rate that holds and "+
		"one that fails must be")
	fl.IntVar(&f.confirm, "confirm", 3, "with --find-max: `number` of loads at the rate that holds and at that which "+
		"fails, of which most must agree")
}

// asked reports whether more than one load is to be made.
func (f *experimentFlags) asked() bool {
	return f.sweep != "" || f.findMax != "" || f.repeat > 0 || f.compare != "" || f.targets
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
func (f *experimentFlags) check(b *benchFlags) error {
	if f.given.Changed("repeat") && (f.repeat < 1 || f.repeat > mostRepeats) {
		return cli.Usagef("--repeat %d: give 1 to %d", f.repeat, mostRepeats)
	}
	if err := f.checkAlone(); err != nil || !f.asked() {
		return err
	}
	if err := cli.NotNegative("warmup", f.warmup); err != nil {
		return err
	}
	var err error
	switch {
	case f.sweep != "":
		err = f.checkSweep(b)
	case f.findMax != "":
		err = f.checkFindMax(b)
	case f.targets:
		err = f.checkTargets(b)
	default:
		err = f.checkRepeats(b)
	}
	f.eachLasts = b.load.Duration
	return err
}

// checkAlone refuses flags that do not go together.
func (f *experimentFlags) checkAlone() error {
	given := func(names ...string) string {
		i := slices.IndexFunc(names, f.given.Changed)
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
		{"compare-targets", []string{"replay"}, "it compares with a load that is made anew for each: --command"},
		{"find-max", []string{"requests", "ramp", "schedule"}, "it sets the rate itself, and --for says how long " +
			"each load is"},
	} {
		if other := given(rule.without...); other != "" && f.given.Changed(rule.with) {
			return cli.Usagef("--%s does not go with --%s: %s", rule.with, other, rule.why)
		}
	}
	if other := given("csv", "hlog", "record"); other != "" && f.asked() {
		return cli.Usagef("--%s is for one load: leave out --sweep, --find-max, --repeat, --compare and "+
			"--compare-targets", other)
	}
	if f.given.Changed("verify") && f.asked() {
		return cli.Usagef("--verify is for one load, since each of an experiment draws its values anew: leave out " +
			"--sweep, --find-max, --repeat, --compare and --compare-targets")
	}
	for flag, needs := range map[string]string{
		"gain": "sweep", "precision": "find-max", "confirm": "find-max", "html": "compare-targets",
	} {
		if f.given.Changed(flag) && !f.given.Changed(needs) {
			return cli.Usagef("--%s is for --%s: add it, or leave this out", flag, needs)
		}
	}
	if f.given.Changed("warmup") && !f.asked() {
		return cli.Usagef("--warmup is for --sweep, --find-max, --repeat, --compare and --compare-targets: add " +
			"one of them, or leave it out")
	}
	return nil
}

func (f *experimentFlags) checkSweep(b *benchFlags) (err error) {
	if f.axis, err = experiment.ParseAxis(f.sweep); err != nil {
		return cli.Usagef("--sweep %w", err)
	}
	if f.gainShare, err = parseShare(f.gain); err != nil {
		return cli.Usagef("--gain %q: %w", f.gain, err)
	}
	if f.axis.Name == experiment.Rate && b.rate != "" {
		return cli.Usagef("--sweep rate=… sets the rate itself: leave out --rate")
	}
	if f.axis.Name == experiment.Connections || f.axis.Name == experiment.Pipeline ||
		f.axis.Name == experiment.Threads {
		if b.rate != "" {
			return cli.Usagef("--sweep %s=… asks how fast the server goes, and --rate sets that: leave out --rate",
				f.axis.Name)
		}
	}
	f.repeat = cmp.Or(f.repeat, sweepRepeats)
	b.load.Duration = cmp.Or(b.load.Duration, sweepLasts)
	for _, v := range f.axis.Values { // refused now, and not half way
		one := f.at(*b, v)
		if _, err := one.options(); err != nil {
			return err
		}
	}
	return nil
}

// at is the flags with a value of the axis.
func (f *experimentFlags) at(b benchFlags, value int) benchFlags {
	switch f.axis.Name {
	case experiment.Connections:
		b.load.Connections = value
	case experiment.Pipeline:
		b.load.Pipeline = value
	case experiment.Threads:
		b.load.Threads = value
	case experiment.Rate:
		b.rate = strconv.Itoa(value)
	case experiment.ValueSize:
		b.work.size = strconv.Itoa(value)
	}
	return b
}

func (f *experimentFlags) checkFindMax(b *benchFlags) (err error) {
	if f.limit, err = experiment.ParseLimit(f.findMax); err != nil {
		return cli.Usagef("--find-max %w", err)
	}
	if f.closeness, err = parseShare(f.precision); err != nil {
		return cli.Usagef("--precision %q: %w", f.precision, err)
	}
	if f.confirm < 1 || f.confirm > mostConfirm {
		return cli.Usagef("--confirm %d: give 1 to %d", f.confirm, mostConfirm)
	}
	f.startsWith = firstPerSecond
	if b.rate != "" {
		if f.startsWith, err = parseLoadRate(b.rate); err != nil {
			return cli.Usagef("--rate %q: %w", b.rate, err)
		}
	}
	b.rate = strconv.FormatFloat(f.startsWith, 'f', -1, 64)
	b.load.Duration = cmp.Or(b.load.Duration, findMaxLasts)
	return nil
}

func (f *experimentFlags) checkTargets(b *benchFlags) error {
	b.load.Duration = cmp.Or(b.load.Duration, targetLasts)
	if f.repeat = cmp.Or(f.repeat, targetRounds); f.repeat > mostRounds {
		return cli.Usagef("--repeat %d: give at most %d rounds", f.repeat, mostRounds)
	}
	return nil
}

func (f *experimentFlags) checkRepeats(b *benchFlags) error {
	if b.load.Requests == 0 && b.schedule == "" && b.replay.file == "" {
		b.load.Duration = cmp.Or(b.load.Duration, repeatLasts)
	}
	if f.compare == "" {
		return nil
	}
	body, err := cli.ReadNamed(f.compare, mostResultsBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("no such file: %s; slowpath bench … --repeat %d --json > FILE makes one", f.compare,
			compareRepeats)
	}
	if err != nil {
		return cli.Usagef("--compare: %w", err)
	}
	if f.baseline, err = baselineOf(f.compare, body); err != nil {
		return cli.Usagef("--compare %s: %w", f.compare, err)
	}
	f.repeat = cmp.Or(f.repeat, max(compareRepeats, min(len(f.baseline.Runs), mostRepeats)))
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
