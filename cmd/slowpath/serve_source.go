package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/agent/web"
	"slowpath/internal/bucket"
	"slowpath/internal/cli"
	"slowpath/internal/manyhosts"
	"slowpath/internal/serving"
)

// tenantPlace is where the name of a tenant comes in a source.
const tenantPlace = "{tenant}"

const (
	// sourceAge is how old what was read of recordings may be.
	sourceAge = 30 * time.Second
	// clickHouseTime is what is asked of ClickHouse where nothing else is said.
	clickHouseTime = time.Hour
)

// sourceFlags are those of the page of many hosts.
type sourceFlags struct{ name, tenants string }

func addSourceFlags(f *pflag.FlagSet, s *sourceFlags) {
	f.StringVar(&s.name, "source", "", "show what agents have sent into this `source`, and watch nothing: "+
		"clickhouse://..., s3://..., or a directory of recordings")
	f.StringVar(&s.tenants, "tenants", "", "`file` with lines \"TENANT TOKEN\": who has a token sees what its "+
		"tenant has; {tenant} in --source is its name")
}

func addListen(f *pflag.FlagSet, p *serving.Page) {
	f.StringVar(&p.Listen, "listen", serving.DefaultListen, "`address` of the page and of /metrics; other hosts need "+
		"a token and TLS")
}

func addPageFlags(f *pflag.FlagSet, p *serving.Page) {
	f.StringVar(&p.TokenFile, "token-file", "", "`file` with a token of 16 characters or more, which others give to "+
		"see anything")
	f.StringVar(&p.Cert, "tls-cert", "", "certificate `file` of the page")
	f.StringVar(&p.Key, "tls-key", "", "its key `file`")
	f.StringSliceVar(&p.HostNames, "host-name", nil, "another `name` at which browsers reach the page, such as that "+
		"of a proxy in front")
	f.BoolVar(&p.AllowWrites, "allow-writes", false, "others may mark times and begin incidents, too")
}

// addRecordingsPlace are the flags of a bucket.
func addRecordingsPlace(f *pflag.FlagSet, b *bucket.Options) {
	f.StringVar(&b.Endpoint, "recordings-endpoint", "", "`address` of an S3 server; without it, AWS_ENDPOINT_URL or "+
		"AWS")
	f.StringVar(&b.Region, "recordings-region", "", "`region` of the bucket; without it, AWS_REGION or us-east-1")
	f.StringVar(&b.Credentials, "recordings-credentials", "", "`file` with the key, as ~/.aws/credentials; without "+
		"it, as the tools of AWS find theirs")
	f.StringVar(&b.CA, "recordings-ca", "", "`file` with the CA certificates of the S3 server")
	f.BoolVar(&b.Plain, "recordings-plain", false, "an S3 server on another host may be without TLS")
}

// ofPage are the flags of serve that the page of many hosts has.
var ofPage = []string{
	"source", "tenants", "listen", "token-file", "tls-cert", "tls-key", "host-name", "recordings-endpoint",
	"recordings-region", "recordings-credentials", "recordings-ca", "recordings-plain",
}

// serveSource is serve with --source.
func (a *app) serveSource(cmd *cobra.Command, args []string, s sourceFlags, page serving.Page, b bucket.Options) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(ofPage, f.Name) {
			err = cli.Usagef("--%s: with --source serve watches nothing: leave it out", f.Name)
		}
	})
	if err == nil && len(args) > 0 {
		err = cli.Usagef("%s: with --source serve watches nothing: leave the servers out", args[0])
	}
	if err != nil {
		return err
	}
	return a.showFleet(cmd.Context(), s.name, serving.FleetPage{Page: page, Tenants: s.tenants}, b)
}

// showFleet shows the page of many hosts.
func (a *app) showFleet(ctx context.Context, source string, p serving.FleetPage, b bucket.Options) error {
	if manyhosts.IsPrometheus(source) {
		return cli.Usagef("--source %s: Prometheus has no causes and no incidents to show: ask it by slowpath fleet, "+
			"or use the dashboard of packaging/grafana", source)
	}
	if p.Tenants != "" && !manyhosts.IsClickHouse(source) && !strings.Contains(source, tenantPlace) {
		return cli.Usagef("--tenants: recordings do not say whose they are: give each tenant a place of its own, as " +
			"in --source s3://incidents/{tenant}")
	}
	if p.Tenants == "" && strings.Contains(source, tenantPlace) {
		return cli.Usagef("--source %s: who is {tenant}? Add --tenants FILE", source)
	}
	s := &shownSources{app: a, source: source, bucket: b, all: map[string]*shownSource{}}
	defer a.Scratch.Remove()
	defer s.close()
	p.Fleet.Source, p.Fleet.Open = source, s.open
	if p.Tenants == "" {
		opened, err := s.open(ctx, "", web.When{})
		if err == nil {
			opened.Done()
		} else if !errors.Is(err, manyhosts.ErrNoMinutes) && !errors.Is(err, manyhosts.ErrNoRecordings) {
			return err // what is wrong is told at once; what is missing may come
		}
	}
	return serving.ShowFleet(ctx, a.Program, p)
}

// shownSources are the sources of a page, by tenant.
type shownSources struct {
	app    *app
	source string
	bucket bucket.Options

	mu      sync.Mutex // of all
	all     map[string]*shownSource
	opening sync.Mutex // held while one is opened: they share the terminal and the folder of the cache
}

// shownSource is that of a tenant.
type shownSource struct {
	sync.RWMutex // read while it is asked
	source       manyhosts.Source
	opened       time.Time
	from, to     time.Time // what there is of a bucket
}

// open implements web.FleetOptions.Open.
func (s *shownSources) open(ctx context.Context, tenant string, at web.When) (out web.Opened, err error) {
	s.mu.Lock()
	one := s.all[tenant]
	if one == nil {
		one = &shownSource{}
		s.all[tenant] = one
	}
	s.mu.Unlock()
	isBucket := strings.HasPrefix(s.source, bucketScheme)
	if isBucket { // only what is asked is fetched
		at = complete(at, time.Time{}, time.Now().Truncate(time.Minute), bucketTime)
	}
	one.RLock()
	for range 2 {
		if one.has(at, isBucket) {
			break
		}
		one.RUnlock()
		err = s.openAgain(ctx, one, tenant, at)
		one.RLock()
		if err != nil {
			break
		}
	}
	if err == nil && one.source == nil {
		err = errors.New("the source was closed at this moment: load the page again")
	}
	var first, last time.Time
	if err == nil {
		first, last, err = one.source.Span(ctx)
	}
	if err != nil {
		one.RUnlock()
		return out, err
	}
	most := time.Duration(0)
	if manyhosts.IsClickHouse(s.source) {
		most = clickHouseTime
	}
	at = complete(at, first, last, most)
	return web.Opened{Source: one.source, From: at.From, To: at.To, Done: one.RUnlock}, nil
}

// complete fills in what a question does not say: all from first to last, or most of that.
func complete(at web.When, first, last time.Time, most time.Duration) web.When {
	if at.To.IsZero() {
		at.To = last
	}
	if at.Last == 0 {
		at.Last = most
	}
	if at.From.IsZero() && at.Last > 0 {
		at.From = at.To.Add(-at.Last)
	}
	if at.From.IsZero() {
		at.From = first
	}
	return at
}

// has: it can be asked as it is.
func (one *shownSource) has(at web.When, isBucket bool) bool {
	switch one.source.(type) {
	case nil:
		return false
	case *manyhosts.ClickHouse:
		return true
	}
	return time.Since(one.opened) < sourceAge && (!isBucket || !at.From.Before(one.from) && !at.To.After(one.to))
}

// openAgain opens a source, and closes what was open of it.
func (s *shownSources) openAgain(ctx context.Context, one *shownSource, tenant string, at web.When) error {
	one.Lock() // waits for those who ask it, and nobody waits for that but they
	defer one.Unlock()
	s.opening.Lock()
	defer s.opening.Unlock()
	if one.has(at, strings.HasPrefix(s.source, bucketScheme)) {
		return nil // another request was here before
	}
	if one.source != nil {
		_ = one.source.Close() // it was read only
		one.source = nil
	}
	f := &fleetFlags{bucket: bucketFlags{Options: s.bucket, maxFetch: maxFetch}}
	f.from, f.to = at.From.Format(time.RFC3339), at.To.Format(time.RFC3339)
	source, err := s.app.openSource(ctx, f, "", "", []string{strings.ReplaceAll(s.source, tenantPlace, tenant)})
	if err != nil {
		return err
	}
	if c, ok := source.(*manyhosts.ClickHouse); ok && tenant != "" && !strings.Contains(s.source, tenantPlace) {
		c.OfTenant(tenant)
	}
	one.source, one.opened, one.from, one.to = source, time.Now(), at.From, at.To
	return nil
}

func (s *shownSources) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		one.Lock()
		if one.source != nil {
			_ = one.source.Close() // it was read only
		}
		one.Unlock()
	}
}
