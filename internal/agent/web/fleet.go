package web

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"slowpath/internal/manyhosts"
)

// FleetOptions are those of the page of many hosts.
type FleetOptions struct {
	Options // who may see it, Version, Log and Now
	// Source is what is asked, as it is named in commands.
	Source string
	// Open gives what a tenant may be asked about a time.
	Open func(ctx context.Context, tenant string, at When) (Opened, error)
}

// When is the time of a question: of From to To; without From of Last before To; without To before the end of all. Last
// may be zero: of all that there is, or what is asked where nothing is said.
type When struct {
	From, To time.Time
	Last     time.Duration
}

// Opened is a source of which a time is asked.
type Opened struct {
	Source   manyhosts.Source
	From, To time.Time
	Done     func() // it was asked
}

// Fleet is the page of many hosts.
type Fleet struct {
	site
	o       FleetOptions
	answers answers
	asking  chan struct{} // has an element for each question that is asked
}

// Bounds of what the page asks.
const (
	maxAsking    = 4                 // questions at a time
	askTime      = 100 * time.Second // of a request
	answerAge    = 30 * time.Second  // for which an answer is as good as a new one
	maxAnswers   = 256
	overviewRows = 10
	tableRows    = 200
	courseSteps  = 120
)

// NewFleet checks the options. The error names the flags that are missing.
func NewFleet(o FleetOptions) (*Fleet, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Fleet{o: o, asking: make(chan struct{}, maxAsking)}
	var err error
	f.site, err = newSite(o.Options, "slowpath", fleetNavigation, func() *statusPill { return nil })
	return f, err
}

// Serve answers requests until the context ends, and closes the listener. The error is nil then.
func (f *Fleet) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{Handler: f.access.wrap(f.routes()), WriteTimeout: askTime + writeTimeout, TLSConfig: f.o.TLS}
	return f.serve(ctx, h, l)
}

func (f *Fleet) routes() http.Handler {
	m := http.NewServeMux()
	for pattern, answer := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /{$}":                     f.overviewPage,
		"GET /ask/{question}":          f.questionPage,
		"GET /incident":                f.incidentPage,
		"GET /compare":                 f.comparePage,
		"GET /api/v1/fleet/{question}": f.document,
		"GET /login":                   f.loginPage,
		"POST /login":                  f.login,
		"POST /logout":                 f.logout,
	} {
		m.HandleFunc(pattern, f.answering(func(w http.ResponseWriter, r *http.Request) error {
			ctx, cancel := context.WithTimeout(r.Context(), askTime)
			defer cancel()
			return answer(w, r.WithContext(ctx))
		}))
	}
	m.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	m.Handle("GET /assets/", assetsHandler())
	return withErrors(m)
}

func fleetNavigation(page string) []link {
	return []link{
		{"Overview", "/", page == "fleet"},
		{"Incidents", "/ask/incidents", false},
		{"Who", "/ask/who", false},
		{"Changes", "/ask/changes", false},
		{"Calls", "/ask/calls", false},
		{"Edges", "/ask/edges", false},
		{"Compare", "/compare", page == "fleet-compare"},
	}
}

// asked is what a request asks about, and who asks.
type asked struct {
	tenant string
	when   When
	filter manyhosts.Filter // without a time, until the source is open
	values url.Values       // that links to other pages keep
}

// ask reads the parameters that all pages have.
func (f *Fleet) ask(r *http.Request, limit int) (a asked, err error) {
	a.tenant, _ = r.Context().Value(tenantKey{}).(string)
	a.values = url.Values{}
	for _, p := range []struct {
		name string
		to   *string
	}{
		{"cluster", &a.filter.Cluster}, {"node", &a.filter.Node}, {"caller", &a.filter.Caller},
	} {
		if *p.to, err = textParameter(r, p.name, maxText); err != nil {
			return a, err
		}
		a.keep(p.name, *p.to)
	}
	if a.when.Last, err = durationParameter(r, "last", time.Minute, 400*24*time.Hour, 0); err != nil {
		return a, err
	}
	if a.when.From, err = timeParameter(r, "from"); err != nil {
		return a, err
	}
	if a.when.To, err = timeParameter(r, "to"); err != nil {
		return a, err
	}
	if !a.when.From.IsZero() && !a.when.To.IsZero() && !a.when.From.Before(a.when.To) {
		return a, bad("from is not before to")
	}
	for _, name := range []string{"last", "from", "to"} {
		a.keep(name, r.URL.Query().Get(name))
	}
	a.filter.Limit, err = intParameter(r, "limit", 1, maxFleetRows, limit)
	return a, err
}

// maxFleetRows is how many rows an answer may have.
const maxFleetRows = 10_000

func (a *asked) keep(name, value string) {
	if value != "" {
		a.values.Set(name, value)
	}
}

// link is an address of another page with what is asked about, and another parameter.
func (a *asked) link(path string, others ...string) string {
	v := url.Values{}
	for name, values := range a.values {
		v[name] = values
	}
	for i := 0; i < len(others); i += 2 {
		v.Set(others[i], others[i+1])
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// open opens the source, and fills in the time that is asked.
func (f *Fleet) open(ctx context.Context, a *asked) (Opened, error) {
	opened, err := f.o.Open(ctx, a.tenant, a.when)
	switch {
	case errors.Is(err, manyhosts.ErrNoRecordings), errors.Is(err, manyhosts.ErrNoMinutes):
		return opened, notFound{err.Error()}
	case errors.Is(err, manyhosts.ErrNoAnswer), errors.Is(err, manyhosts.ErrBucket):
		f.log.say("web: " + err.Error())
		return opened, tooBusy{f.o.Source + " does not answer; the log of slowpath has more"}
	case err != nil:
		return opened, err
	}
	a.filter.From, a.filter.To = opened.From, opened.To
	span := opened.To.Sub(opened.From)
	a.filter.Step = manyhosts.Step(span, courseSteps)
	if span >= manyhosts.LongTime {
		a.filter.Step = max(a.filter.Step, time.Hour) // hours are asked
	}
	return opened, nil
}

// question asks one question, or says again what was answered a moment ago.
func (f *Fleet) question(ctx context.Context, s manyhosts.Source, q manyhosts.Question, a asked) (manyhosts.Answer,
	error,
) {
	key := answerKey{a.tenant, q.Name, a.filter}
	if answer, ok := f.answers.get(key, f.o.Now()); ok {
		return answer, nil
	}
	select {
	case f.asking <- struct{}{}:
		defer func() { <-f.asking }()
	case <-ctx.Done():
		return manyhosts.Answer{}, tooBusy{"too many questions are asked at this time: try again"}
	}
	answer, err := manyhosts.Ask(ctx, s, q, a.filter)
	if err == nil {
		f.answers.keep(key, f.o.Now(), answer)
	}
	return answer, err
}

// all asks several questions, each of them as soon as there is a place. Their errors are theirs.
func (f *Fleet) all(ctx context.Context, s manyhosts.Source, each []asking) {
	var wait sync.WaitGroup
	for i := range each {
		wait.Go(func() { each[i].answer, each[i].err = f.question(ctx, s, each[i].question, each[i].asked) })
	}
	wait.Wait()
}

// asking is a question, and what was answered.
type asking struct {
	question manyhosts.Question
	asked    asked
	answer   manyhosts.Answer
	err      error
}

// begin reads what a request asks, and opens the source.
func (f *Fleet) begin(r *http.Request, limit int) (a asked, opened Opened, err error) {
	if a, err = f.ask(r, limit); err == nil {
		opened, err = f.open(r.Context(), &a)
	}
	return a, opened, err
}

// document answers GET /api/v1/fleet/QUESTION.
func (f *Fleet) document(w http.ResponseWriter, r *http.Request) error {
	q, ok := manyhosts.QuestionOf(r.PathValue("question"))
	if !ok {
		return notFound{"there is no question " + quoted(r.PathValue("question"))}
	}
	a, opened, err := f.begin(r, tableRows)
	if err != nil {
		return err
	}
	defer opened.Done()
	answer, err := f.question(r.Context(), opened.Source, q, a)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	if err := answer.JSON(&buf, a.filter); err != nil {
		return err
	}
	sendBytes(w, http.StatusOK, "application/json", buf.Bytes())
	return nil
}

// answers are the newest answers: whoever looks at the same page does not ask once more.
type answers struct {
	mu  sync.Mutex
	all map[answerKey]answered
}

type answerKey struct {
	tenant, question string
	filter           manyhosts.Filter
}

type answered struct {
	at     time.Time
	answer manyhosts.Answer
}

func (c *answers) get(k answerKey, now time.Time) (manyhosts.Answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.all[k]
	return one.answer, ok && now.Sub(one.at) < answerAge && !now.Before(one.at)
}

func (c *answers) keep(k answerKey, now time.Time, a manyhosts.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= maxAnswers {
		c.all = map[answerKey]answered{}
	}
	c.all[k] = answered{now, a}
}
