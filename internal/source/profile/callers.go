package profile

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/profile/interpreter"
	"slowpath/internal/source/profile/python"
	"slowpath/internal/source/profile/ruby"
	"slowpath/internal/source/profile/stacks"
)

// Bounds of the samples of callers.
const (
	maxCallers       = 8                     // processes, of each kind
	maxFound         = 256                   // processes that are looked at together
	maxCallerThreads = 32                    // of each
	callersEvery     = 20 * time.Millisecond // at most so often,
	callersSpare     = 200                   // and not before so many times what the last round took: 0.5 % of a core
	threadsEvery     = time.Second           // the threads of a process are looked for
)

// Callers samples what the threads of programs do that call servers, while they run and while they wait: those in
// languages whose interpreters have their stacks in memory. Nothing is done to the programs.
type Callers struct {
	Options
	other  func(pid int) // called with the first processes that run none of the languages,
	others int           // which are so many
	full   bool          // there are more of a kind
	found  chan int
	apps   map[int]*interpreted
	tried  map[int]tried
}

// language is one whose stacks are read.
type language struct {
	*interpreter.Language
	kind     string // of what is recorded
	versions string
	place    func(file string) (library string, is bool) // what is said of a library's file
}

var languages = []language{
	{&python.Language, recording.ProfilePython, "CPython 3.11 to 3.15", pythonLibrary},
	{&ruby.Language, recording.ProfileRuby, "CRuby 3.1, 3.3 or 3.4", rubyLibrary},
}

// interpreted is a process of a language.
type interpreted struct {
	*interpreter.Process
	language *language
	keeper   *keeper
	threads  []int
	looked   int64 // for them
	more     bool  // it has others
	sample   interpreter.Sample
	stacks   []stacks.Stack
}

// NewCallers samples what is found while Run runs. other is called with the first processes that run none of the
// languages.
func NewCallers(o Options, other func(pid int)) *Callers {
	return &Callers{
		Options: o.withDefaults(), other: other, found: make(chan int, maxFound), apps: map[int]*interpreted{},
		tried: map[int]tried{},
	}
}

// Found says that a process calls a server. Beyond so many they are not sampled.
func (c *Callers) Found(pid int) {
	select {
	case c.found <- pid:
	default:
	}
}

// Run samples until ctx ends.
func (c *Callers) Run(ctx context.Context) error {
	alarm, err := clock.NewAlarm(ctx)
	if err != nil {
		return err
	}
	defer alarm.Close() //nolint:errcheck // a timer
	defer c.close()
	kept := c.Clock.Now()
	for pause := callersEvery; alarm.Sleep(pause); {
		begin := c.Clock.Now()
		c.open()
		for pid, a := range c.apps {
			if c.read(a, pid, begin) != nil {
				c.keep(a)
				c.drop(pid)
			}
		}
		pause = max(callersEvery, callersSpare*time.Duration(c.Clock.Now()-begin))
		if begin-kept >= int64(keepEvery) {
			kept = begin
			for _, a := range c.apps {
				c.keep(a)
			}
		}
	}
	for pid, t := range c.tried {
		c.cannot(pid, t.language, t.err)
	}
	for _, a := range c.apps {
		c.keep(a)
	}
	return nil
}

func (c *Callers) close() {
	for pid := range c.apps {
		c.drop(pid)
	}
}

func (c *Callers) drop(pid int) {
	_ = c.apps[pid].Close() // it was only read
	delete(c.apps, pid)
}

// open begins to sample the processes that were found.
func (c *Callers) open() {
	for {
		select {
		case pid := <-c.found:
			c.add(pid)
		default:
			for pid, t := range c.tried {
				if c.Clock.Now() >= t.again {
					c.add(pid)
				}
			}
			return
		}
	}
}

// tried is how often a process was looked into in vain, and when it is again: one that has just begun, or begins
// threads, does not look like what it is.
type tried struct {
	times    int
	again    int64
	language *language
	err      error
}

// mostTries are made, threadsEvery apart.
const mostTries = 4

// add begins to sample a process, and says so where it cannot.
func (c *Callers) add(pid int) {
	t := c.tried[pid]
	if c.apps[pid] != nil || c.Clock.Now() < t.again {
		return
	}
	delete(c.tried, pid)
	l, p, err := c.inLanguage(pid)
	foreign := errors.Is(err, interpreter.ErrNone)
	switch {
	case errors.Is(err, interpreter.ErrVersion) && t.times < mostTries && len(c.tried) < maxFound:
		c.tried[pid] = tried{t.times + 1, c.Clock.Now() + int64(threadsEvery), l, err}
		return
	case foreign && c.others < maxCallers:
		c.others++
		c.other(pid)
		return
	case errors.Is(err, interpreter.ErrVersion) || errors.Is(err, interpreter.ErrPrivilege):
		c.cannot(pid, l, err)
		return
	case err != nil && !foreign: // it has ended, mostly
		return
	case err == nil && len(c.apps) < maxCallers:
		c.apps[pid] = &interpreted{Process: p, language: l, keeper: c.keeperOf(pid)}
		return
	case err == nil:
		_ = p.Close() // it was only read
	}
	if !c.full {
		c.full = true
		c.keeperOf(pid).blind("which functions other programs run that call", fmt.Sprintf("%d are sampled", maxCallers),
			"--profile cpu:PID")
	}
}

// cannot says that a process is not sampled.
func (c *Callers) cannot(pid int, l *language, err error) {
	c.keeperOf(pid).blind(fmt.Sprintf("which functions process %d runs, which calls", pid), err.Error(),
		"run as root; "+l.versions)
}

func (c *Callers) keeperOf(pid int) *keeper {
	return (&Source{Options: c.Options}).keeper(recording.ProcessPrefix + strconv.Itoa(pid))
}

// inLanguage opens a process by the language that it runs.
func (c *Callers) inLanguage(pid int) (l *language, p *interpreter.Process, err error) {
	for i := range languages {
		l = &languages[i]
		if p, err = l.Open(c.FS, pid); !errors.Is(err, interpreter.ErrNone) {
			break
		}
	}
	return l, p, err
}

// read takes a sample of a process.
func (c *Callers) read(a *interpreted, pid int, now int64) error {
	if a.looked == 0 || now-a.looked >= int64(threadsEvery) {
		a.looked = now
		all := threadsOf(c.FS, pid)
		a.threads = all[:min(len(all), maxCallerThreads)]
		if len(all) > len(a.threads) && !a.more {
			a.more = true
			a.keeper.blind(fmt.Sprintf("which functions other threads of process %d run", pid), fmt.Sprintf(
				"%d are sampled, those with the lowest numbers", maxCallerThreads), "--profile cpu:"+strconv.Itoa(pid))
		}
	}
	if err := a.Stacks(a.threads, &a.sample); err != nil {
		return err
	}
	for _, s := range a.sample.Stacks {
		if len(s.Frames) == 0 {
			continue // what it was in is not known
		}
		frames := []string{"thread " + strconv.Itoa(s.TID)}
		for _, f := range slices.Backward(s.Frames) {
			frames = append(frames, a.language.frameText(f))
		}
		holds := int64(0)
		if s.HoldsLock {
			holds = 1
		}
		a.stacks = append(a.stacks, stacks.Stack{
			Frames: frames, Values: []int64{holds, 1}, TimeNs: now, TID: int64(s.TID),
		})
	}
	return nil
}

// threadsOf are the threads of a process, the main thread first.
func threadsOf(fs hostfs.FS, pid int) (tids []int) {
	names, err := fs.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			tids = append(tids, tid)
		}
	}
	slices.Sort(tids)
	return tids
}

// frameText is a call in words: "parse (app.py:42)", and of a library "urlopen [urllib/request.py:216]". No directory
// of the application is in it.
func (l *language) frameText(f interpreter.Frame) string {
	function := strings.NewReplacer("<locals>.", "", "<", "", ">", "").Replace(f.Function)
	if file, library := l.place(f.File); library {
		return fmt.Sprintf("%s [%s:%d]", function, file, f.Line)
	}
	return fmt.Sprintf("%s (%s:%d)", function, path.Base(f.File), f.Line)
}

// pythonLibrary: "/usr/lib/python3.11/urllib/request.py" is urllib/request.py.
func pythonLibrary(file string) (library string, is bool) {
	for _, mark := range []string{"/site-packages/", "/dist-packages/", "<frozen "} {
		if _, after, ok := strings.Cut(file, mark); ok {
			file, is = strings.TrimSuffix(after, ">"), true
		}
	}
	if _, after, ok := strings.Cut(file, "/lib/python3"); ok && !is {
		_, file, is = strings.Cut(after, "/")
	}
	return file, is
}

// gem is where gems are: "/var/lib/gems/3.1.0/gems/puma-6.4.0/lib/puma/server.rb".
var gem = regexp.MustCompile(`^.*/gems/([^/]+-[0-9][^/]*/.+)$`)

// rubyLibrary: "/usr/lib/ruby/3.1.0/json/common.rb" is json/common.rb, and "<internal:kernel>" is kernel.
func rubyLibrary(file string) (library string, is bool) {
	if after, ok := strings.CutPrefix(file, "<internal:"); ok {
		return strings.TrimSuffix(after, ">"), true
	}
	if m := gem.FindStringSubmatch(file); m != nil {
		return m[1], true
	}
	if _, after, ok := strings.Cut(file, "/lib/ruby/"); ok { // vendor_ruby, 3.1.0
		_, file, is = strings.Cut(after, "/")
	}
	return file, is
}

// keep records the samples since the last time.
func (c *Callers) keep(a *interpreted) {
	if len(a.stacks) == 0 {
		return
	}
	body, err := stacks.Write(&stacks.Profile{Types: []stacks.Type{
		{Name: "holds_lock", Unit: "count"},
		{Name: "samples", Unit: "count"},
	}, Stacks: a.stacks})
	if err == nil {
		a.keeper.keep(a.language.kind, body)
	}
	a.stacks = nil
}
