package target

import "fmt"

// fillLogin gives each target the user, password, database and protocol its URL left out.
func (o Options) fillLogin(list []address, env func(string) string) error {
	password, err := o.password(list, env)
	if err != nil {
		return err
	}
	for i := range list {
		a := &list[i]
		if a.Password == "" {
			a.Password = password
		}
		if a.User == "" {
			a.User = o.User
		}
		if !a.hasDB {
			a.DB = o.DB
		}
		if a.Protocol == 0 {
			a.Protocol = o.protocol()
		}
	}
	return nil
}

// password is the one from outside the URLs, in redis-cli's order: --askpass, -a, REDISCLI_AUTH. It prompts only if a
// target has none of its own.
func (o Options) password(list []address, env func(string) string) (string, error) {
	needed := false
	for _, a := range list {
		needed = needed || a.Password == ""
	}
	switch {
	case !needed:
		return "", nil
	case o.AskPass && o.ReadPassword == nil:
		return "", badTarget("--askpass needs a terminal: set REDISCLI_AUTH instead")
	case o.AskPass:
		password, err := o.ReadPassword()
		if err != nil {
			return "", fmt.Errorf("reading the password: %w", err)
		}
		return password, nil
	case o.Password == "" && env != nil:
		return env("REDISCLI_AUTH"), nil
	}
	return o.Password, nil
}

func (o Options) protocol() int {
	switch {
	case o.RESP2:
		return 2
	case o.RESP3:
		return 3
	}
	return 0
}

// fillTLS turns TLS on where it was asked for, by flag or by scheme, with the same details everywhere.
func (o Options) fillTLS(list []address) error {
	details := TLSOptions{
		SNI: o.SNI, CACert: o.CACert, CACertDir: o.CACertDir, Cert: o.Cert, Key: o.Key,
		Insecure: o.Insecure,
	}
	used := false
	for i := range list {
		if o.TLS || list[i].TLS != nil {
			own := details
			list[i].TLS, used = &own, true
		}
	}
	if !used && details != (TLSOptions{}) {
		return badTarget("--sni, --cacert, --cert, --key and --insecure need TLS: add --tls or write rediss://")
	}
	return nil
}
