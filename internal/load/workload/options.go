package workload

import (
	"math"
	"strings"
	"time"
)

// Options say what a load sends. The zero value of each field has a default.
type Options struct {
	Commands  []string      // names of Named, or templates (Placeholders); none: get
	Ratios    []float64     // one for each command, or none: equal
	Keys      Keys          // the zero value: Low and High 0, one key
	KeyPrefix string        // between Prefix and the rest of each key
	Sizes     Sizes         // of values
	Content   Content       // of values
	Expire    time.Duration // of keys that SET and SETEX write; at least 1 ms; 0: none
	Verify    bool          // mark the ops whose replies can be checked; an error if there is none
	Cluster   bool          // refuse requests whose keys are in several slots
	Dangerous bool          // allow commands that are ErrDangerous
	Seed      uint64        // of the content of values; to Check, those of another seed are wrong
}

func (o Options) prefix() string { return Prefix + o.KeyPrefix }

// Compile makes a workload. Its errors are ErrUsage, and ErrDangerous or ErrState too where a command is refused.
func Compile(o Options) (*Workload, error) {
	if len(o.Commands) == 0 {
		o.Commands = []string{"get"}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	w := &Workload{options: o, keys: newDrawer(o.Keys), values: newValues(o.Sizes, o.Content, o.Seed)}
	for i, text := range o.Commands {
		ratio := 1.0
		if len(o.Ratios) > 0 {
			ratio = o.Ratios[i]
		}
		if err := w.add(text, ratio); err != nil {
			return nil, err
		}
	}
	return w, w.finish()
}

func (o Options) check() error {
	if n := len(o.Ratios); n != 0 && n != len(o.Commands) {
		return usage("%d ratios for %d commands; give each command one, or none", n, len(o.Commands))
	}
	total := 0.0
	for i, r := range o.Ratios {
		if !(r >= 0 && r <= 1e12) {
			return usage("ratio %v of %q: want a number of 0 to 1e12", r, o.Commands[i])
		}
		total += r
	}
	switch {
	case len(o.Ratios) > 0 && total == 0:
		return usage("all ratios are 0; one at least must be above")
	case o.Expire != 0 && (o.Expire < time.Millisecond || o.Expire%time.Millisecond != 0):
		return usage("expiry %v: want whole milliseconds, at least one", o.Expire)
	}
	if err := checkPrefix(o.KeyPrefix); err != nil {
		return err
	}
	return o.Keys.check()
}

func checkPrefix(text string) error {
	if strings.ContainsAny(text, "{}\r\n\x00") {
		return usage("prefix of keys %q: it cannot have braces, which would be a hash tag for all keys, nor line "+
			"breaks", text)
	}
	return nil
}

// add adds a command.
func (w *Workload) add(text string, ratio float64) error {
	if ratio == 0 {
		return nil
	}
	parts, isNamed := named[strings.ToLower(strings.TrimSpace(text))]
	if !isNamed {
		parts = []share{{text, 1}}
		if word := strings.TrimSpace(text); !strings.ContainsAny(word, " {;") &&
			commands[strings.ToUpper(word)].first != 0 {
			return usage("command %q: write its arguments ('%s key:{key} …'), or one of the names %s", text,
				strings.ToUpper(word), Named())
		}
	}
	for _, p := range parts {
		r, err := parseRequest(w.withExpiry(p.template, isNamed), w.options)
		if err != nil {
			return err
		}
		w.scripts = w.scripts || !isNamed && r.runsScript()
		op := r.op() // before the texts of its scripts are replaced
		w.setup = append(w.setup, r.loadScripts()...)
		op.Ratio = ratio * p.ratio
		w.Ops, w.requests = append(w.Ops, op), append(w.requests, r)
	}
	return nil
}

// finish encodes the requests, after the style of the keys is known.
func (w *Workload) finish() error {
	arguments, drawn := 0, 0
	for _, r := range w.requests {
		a, d := r.keyArguments()
		arguments, drawn = max(arguments, a), max(drawn, d)
	}
	w.style = styleFor(arguments, drawn)
	for _, check := range []func() error{w.expire, w.checkKinds, w.checkSlots, w.encode, w.markChecked} {
		if err := check(); err != nil {
			return err
		}
	}
	w.findChannels()
	w.cumulate()
	return nil
}

// encode makes the templates.
func (w *Workload) encode() error {
	for _, r := range w.requests {
		w.templates = append(w.templates, compile(r, w.style, &w.values))
	}
	return nil
}

// cumulate makes thresholds of the ratios.
func (w *Workload) cumulate() {
	total, sum := 0.0, 0.0
	for _, op := range w.Ops {
		total += op.Ratio
	}
	for _, op := range w.Ops[:len(w.Ops)-1] {
		sum += op.Ratio
		w.thresholds = append(w.thresholds, uint64(min(sum/total*math.Exp2(64), math.Nextafter(math.Exp2(64), 0))))
	}
}
