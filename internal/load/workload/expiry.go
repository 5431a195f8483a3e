package workload

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// namedExpiry is the expiry of the named commands SETEX and PSETEX without Options.Expire.
const namedExpiry = time.Hour

// withExpiry puts Options.Expire into the named commands that have an expiry.
func (w *Workload) withExpiry(template string, isNamed bool) string {
	e := w.options.Expire
	if !isNamed || e == 0 {
		return template
	}
	seconds, ms := strconv.FormatInt(int64(namedExpiry/time.Second), 10), strconv.FormatInt(namedExpiry.Milliseconds(),
		10)
	switch name, _, _ := strings.Cut(template, " "); name {
	case "PSETEX":
		return strings.Replace(template, " "+ms+" ", " "+strconv.FormatInt(e.Milliseconds(), 10)+" ", 1)
	case "SETEX":
		return strings.Replace(template, " "+seconds+" ", " "+strconv.FormatInt(int64((e+time.Second-1)/time.Second),
			10)+" ", 1)
	}
	return template
}

// ownExpiry are the options of SET that set an expiry.
var ownExpiry = []string{"EX", "PX", "EXAT", "PXAT", "KEEPTTL"}

// expire gives every SET without an expiry that of Options.Expire.
func (w *Workload) expire() error {
	if w.options.Expire == 0 {
		return nil
	}
	applies := false
	for _, r := range w.requests {
		for i, c := range r.commands {
			name := strings.ToUpper(c[0].text())
			applies = applies || name == "SET" || name == "SETEX" || name == "PSETEX"
			if name != "SET" || len(c) < 3 || slices.ContainsFunc(c[3:],
				func(a argument) bool { return slices.Contains(ownExpiry, strings.ToUpper(a.text())) }) {
				continue
			}
			r.commands[i] = append(slices.Clip(c), w.expiryArguments()...)
		}
	}
	if !applies {
		return usage("an expiry applies to SET, SETEX and PSETEX, and there is none of them; write an EXPIRE into " +
			"the template")
	}
	return nil
}

func (w *Workload) expiryArguments() []argument {
	ms := strconv.FormatInt(w.options.Expire.Milliseconds(), 10)
	return []argument{{{kind: literalPart, text: "PX"}}, {{kind: literalPart, text: ms}}}
}
