package fleet

import (
	"fmt"
	"strconv"
	"strings"
)

// config is the redis.conf of a server. It has only lines that all versions know; others can be in Spec.Config.
func (s Spec) config(i Info) string {
	if s.sentinelOf != nil {
		return s.sentinelConfig(i)
	}
	var b strings.Builder
	line := func(name string, values ...string) {
		b.WriteString(name)
		for _, v := range values {
			b.WriteString(" " + quote(v))
		}
		b.WriteString("\n")
	}
	line("bind", s.bind())
	line("protected-mode", "no") // a server in a namespace may have no password
	line("daemonize", "no")
	line("logfile", "") // standard output, which is the log file
	line("dir", i.Dir)
	line("save", "")
	line("repl-diskless-sync-delay", "0") // the default makes a new replica wait 5 s for others
	line("appendonly", yesNo(s.AOF))
	if i.Socket != "" {
		line("unixsocket", i.Socket)
		line("unixsocketperm", "700")
	}
	if s.TLS {
		s.tlsConfig(line, i)
	} else {
		line("port", strconv.Itoa(i.Port))
	}
	if s.cluster {
		line("cluster-enabled", "yes")
		line("cluster-config-file", "nodes.conf")
	}
	if s.Password != "" {
		line("requirepass", s.Password)
		line("masterauth", s.Password)
	}
	if m := s.replicaOf; m != nil {
		host := strings.TrimSuffix(m.Addr, fmt.Sprintf(":%d", m.Port))
		line("replicaof", strings.Trim(host, "[]"), strconv.Itoa(m.Port))
	}
	for _, l := range append(s.ACL, s.Config...) {
		b.WriteString(l + "\n")
	}
	return b.String()
}

func (s Spec) tlsConfig(line func(string, ...string), i Info) {
	line("port", "0")
	line("tls-port", strconv.Itoa(i.Port))
	line("tls-ca-cert-file", i.CACert)
	line("tls-cert-file", i.Cert)
	line("tls-key-file", i.Key)
	line("tls-auth-clients", "no")
	line("tls-replication", "yes")
	line("tls-cluster", yesNo(s.cluster))
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// quote writes a value as sdssplitargs (Redis sds.c) reads it.
func quote(v string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(v) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
