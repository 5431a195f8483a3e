package target

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Options are the connection flags of redis-cli, as a subcommand binds them. The zero value is "no flag given".
type Options struct {
	Host     string // -h
	Port     int    // -p; 0 is not given
	Socket   string // -s
	Password string // -a, --pass
	URI      string // -u
	DB       int    // -n
	User     string // --user
	AskPass  bool   // --askpass, wins over -a

	TLS       bool   // --tls
	SNI       string // --sni
	CACert    string // --cacert
	CACertDir string // --cacertdir
	Cert      string // --cert
	Key       string // --key
	Insecure  bool   // --insecure

	Cluster bool // -c; for the caller, no part of a Target
	RESP2   bool // -2
	RESP3   bool // -3

	Timeout time.Duration // for the caller's context, no part of a Target

	ReadPassword func() (string, error) // prompts on the terminal; called at most once, for AskPass
}

// String is the first target of the flags, without a password (which -u or -a may hold).
func (o Options) String() string {
	o.AskPass = false // printing does not prompt
	targets, err := o.Targets(nil, nil)
	if err != nil {
		return "invalid options"
	}
	return targets[0].String()
}

// GoString and Format keep the password out of every verb.
func (o Options) GoString() string { return "target.Options(" + o.String() + ")" }

func (o Options) Format(s fmt.State, verb rune) { redacted(s, verb, o.String(), o.GoString()) }

// Targets combines flags, positional targets and the environment (REDISCLI_AUTH; env may be nil), in this order:
//
//   - -u and -s are whole addresses: each is a target in front of the positional ones.
//   - -h and -p fill in what a positional target leaves out, or name the target if there is no other.
//   - User, password, database and protocol of a URL win over the flags, part by part; -a wins over REDISCLI_AUTH.
//   - --tls makes every target TLS, a redis:// URL too (as with redis-cli --tls -u redis://…).
//   - With nothing at all, the target is 127.0.0.1:6379.
//
// A flag without effect is an error: --cacert without --tls would send the password unencrypted. Errors match
// ErrBadTarget.
func (o Options) Targets(args []string, env func(string) string) ([]Target, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	addresses, err := o.addresses(args)
	if err != nil {
		return nil, err
	}
	if err := o.fillAddresses(addresses); err != nil {
		return nil, err
	}
	if err := o.fillTLS(addresses); err != nil {
		return nil, err
	}
	if err := o.fillLogin(addresses, env); err != nil {
		return nil, err
	}
	targets := make([]Target, len(addresses))
	for i, a := range addresses {
		targets[i] = a.Target
	}
	return targets, nil
}

// check finds errors that do not depend on the targets.
func (o Options) check() error {
	switch {
	case o.Port < 0 || o.Port > math.MaxUint16:
		return badTarget("-p is a port from 1 to 65535")
	case o.DB < 0 || int64(o.DB) > math.MaxInt32:
		return badTarget("-n is a database from 0 to 2147483647")
	case o.RESP2 && o.RESP3:
		return badTarget("-2 and -3 exclude each other")
	case (o.Cert == "") != (o.Key == ""):
		return badTarget("--cert and --key go together")
	case o.URI != "" && !strings.Contains(o.URI, "://"):
		return badTarget("-u takes a URL: redis://[USER:PASSWORD@]HOST[:PORT][/DB]")
	case o.Timeout < 0:
		return badTarget("the timeout is negative")
	}
	return nil
}

// addresses lists the targets before the flags fill them in.
func (o Options) addresses(args []string) ([]address, error) {
	var list []address
	if o.Socket != "" {
		list = append(list, address{Target: Target{Network: "unix", Path: o.Socket}})
	}
	if o.URI != "" {
		a, err := parse(o.URI)
		if err != nil {
			return nil, fmt.Errorf("-u: %w", err)
		}
		list = append(list, a)
	}
	for i, arg := range args {
		a, err := parse(arg)
		if err != nil {
			return nil, fmt.Errorf("target %d: %w", i+1, err)
		}
		list = append(list, a)
	}
	if len(list) == 0 {
		list = []address{{Target: Target{Network: "tcp", Host: DefaultHost, Port: DefaultPort}}}
	}
	return list, nil
}

func (o Options) fillAddresses(list []address) error {
	host, err := o.host()
	if err != nil {
		return err
	}
	lacksHost := func(a address) bool { return a.Network == "tcp" && !a.hasHost }
	lacksPort := func(a address) bool { return a.Network == "tcp" && !a.hasPort }
	if host != "" && !slices.ContainsFunc(list, lacksHost) {
		return badTarget("-h has no effect, for every target names its host: leave one of them out")
	}
	if o.Port != 0 && !slices.ContainsFunc(list, lacksPort) {
		return badTarget("-p has no effect, for every target names its port: leave one of them out")
	}
	for i := range list {
		if host != "" && lacksHost(list[i]) {
			list[i].Host = host
		}
		if o.Port != 0 && lacksPort(list[i]) {
			list[i].Port = o.Port
		}
	}
	return nil
}

// host checks -h, which takes a host alone.
func (o Options) host() (string, error) {
	if strings.ContainsAny(o.Host, "/@") {
		return "", badTarget("-h takes a host, not a URL or a path: use -u URL or -s PATH")
	}
	if o.Host == "" {
		return "", nil
	}
	a, err := parseHostPort(o.Host)
	switch {
	case err != nil:
		return "", fmt.Errorf("-h: %w", err)
	case a.hasPort:
		return "", badTarget("-h takes a host without a port: add -p PORT, or give HOST:PORT without -h")
	}
	return a.Host, nil
}
