package source

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
	"slowpath/internal/source/hostfs"
	"slowpath/internal/source/server"
)

// named are the names of hosts in a recording, with who said so.
func named(rec *recording.Recording) map[string]string {
	out := map[string]string{}
	for _, s := range rec.Snapshots {
		if s.Name == recording.SnapshotHostName {
			out[s.Subject] += s.Body
		}
	}
	return out
}

func callers(addresses ...string) (out []server.Client) {
	for _, a := range addresses {
		out = append(out, server.Client{Addr: a})
	}
	return out
}

// TestHostNames: by /etc/hosts alone, unless DNS is wanted; each host once.
func TestHostNames(t *testing.T) {
	root := host.Root{Root: hostfs.Root{Dir: t.TempDir()}}
	if err := os.Mkdir(filepath.Join(root.Dir, "etc"), 0o700); err != nil {
		t.Fatal(err)
	}
	hosts := "127.0.0.1 localhost\n10.0.0.7 app-3\n10.0.0.8 self\n2001:db8::1 six\n"
	if err := os.WriteFile(filepath.Join(root.Dir, "etc", "hosts"), []byte(hosts), 0o600); err != nil {
		t.Fatal(err)
	}
	all := append(callers("127.0.0.1:5", "10.0.0.7:1", "10.0.0.7:2", "10.0.0.9:1", "10.0.0.10:1", "10.0.0.11:1",
		"[2001:db8::1]:3", "/run/redis.sock:7", ""), server.Client{Addr: "10.0.0.8:1", Self: true})
	lookup := func(ctx context.Context, address string) ([]string, error) {
		switch address {
		case "10.0.0.9":
			return []string{"job-1.prod.", "other."}, nil
		case "10.0.0.10":
			<-ctx.Done() // a server that does not answer
			return nil, ctx.Err()
		case "10.0.0.11":
			return []string{"a\x1b[1mb"}, nil
		}
		return nil, errors.New("no such host")
	}
	seven, six, nine := `{"name":"app-3","by":"/etc/hosts"}`, `{"name":"six","by":"/etc/hosts"}`,
		`{"name":"job-1.prod","by":"dns"}`
	for _, tt := range []struct {
		o    Options
		want map[string]string
	}{
		{Options{FS: root}, map[string]string{"host:10.0.0.7": seven, "host:2001:db8::1": six}},
		{Options{FS: root, Resolve: true}, map[string]string{
			"host:10.0.0.7": seven, "host:2001:db8::1": six, "host:10.0.0.9": nine,
		}},
		{Options{FS: root, Resolve: true, NoHost: true}, map[string]string{"host:10.0.0.9": nine}},
	} {
		synctest.Test(t, func(t *testing.T) {
			tt.o.Clock = clock.New()
			rec := recording.New()
			h := newHostNames(tt.o, rec)
			if tt.o.Resolve != (h.lookup != nil) {
				t.Fatal("DNS is asked where that is wanted, and only there")
			}
			h.listed(all)
			h.listed(all)
			if tt.o.Resolve {
				h.lookup = lookup
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				h.run(ctx)
			}
			if got := named(rec); !maps.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	if newHostNames(Options{NoHost: true}, recording.New()) != nil {
		t.Error("names where no file is read, and nobody is asked")
	}
}

// TestHostNamesAreBounded: of however many hosts.
func TestHostNamesAreBounded(t *testing.T) {
	rec := recording.New()
	h := newHostNames(Options{NoHost: true, Resolve: true, Clock: clock.New()}, rec)
	for i := range 3 * maxNamedHosts {
		h.listed(callers("10.0." + strconv.Itoa(i/200) + "." + strconv.Itoa(i%200+1) + ":1"))
	}
	if len(h.seen) != maxNamedHosts || len(h.ask) != maxNameAsked {
		t.Errorf("%d seen, %d asked for", len(h.seen), len(h.ask))
	}
}
