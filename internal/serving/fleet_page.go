package serving

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"slowpath/internal/agent/web"
	"slowpath/internal/cli"
	"slowpath/internal/source/hostfs"
)

// FleetPage are the options of the page of many hosts.
type FleetPage struct {
	Page
	// Tenants is a file with lines "TENANT TOKEN": who has a token sees what its tenant has; empty: all see all.
	Tenants string
	Fleet   web.FleetOptions // Source and Open
}

// ShowFleet shows the page until the context ends.
func ShowFleet(ctx context.Context, a *cli.Program, p FleetPage) (err error) {
	o := &p.Fleet
	if o.Options, err = p.options(); err != nil {
		return err
	}
	if p.Tenants != "" {
		if p.TokenFile != "" {
			return cli.Usagef("--tenants and --token-file both say who may see the page: give one of them")
		}
		if o.Tenants, err = readTenants(p.Tenants); err != nil {
			return err
		}
	}
	if err := p.check(&o.Options); err != nil {
		return err
	}
	l, err := takeAddress(&o.Options)
	if err != nil {
		return err
	}
	defer l.Close() // twice, unless what follows fails
	o.Version, o.Log = a.Version, a.Say
	f, err := web.NewFleet(*o)
	if err != nil {
		return cli.Usage(err)
	}
	a.OwnLog()
	a.Say("the page: " + addressOf(o.Options))
	return f.Serve(ctx, l)
}

// Bounds of a file of tenants.
const (
	mostTenantsBytes = 256 << 10
	mostTenants      = 1000
)

// tenantName is what a tenant may be called: nothing of it is special in a path, an address or a query.
var tenantName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// readTenants reads tenants by their tokens.
func readTenants(path string) (map[string]string, error) {
	text, err := hostfs.ReadRegular(hostfs.Root{}, path, mostTenantsBytes)
	if err != nil {
		return nil, cli.Usagef("--tenants: %w", err)
	}
	out := map[string]string{}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		wrong := func(why string) error { return cli.Usage(fmt.Errorf("--tenants %s:%d: %s", path, number, why)) }
		switch {
		case len(fields) != 2:
			return nil, wrong("write a tenant and its token, with a space between")
		case !tenantName.MatchString(fields[0]):
			return nil, wrong("the name of a tenant has letters, digits, - and _, 64 at most")
		case out[fields[1]] != "":
			return nil, wrong("the token is that of another tenant, too: give each its own")
		case len(out) == mostTenants:
			return nil, wrong(fmt.Sprintf("there are more than %d tenants: start a second page", mostTenants))
		}
		out[fields[1]] = fields[0]
	}
	if len(out) == 0 {
		return nil, cli.Usagef("--tenants %s: there is no tenant: write lines with a tenant and its token", path)
	}
	return out, nil
}
