package host

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/recording"
	"slowpath/internal/source/hostfs"
)

// wallClock is that of the bubble.
type wallClock struct{}

func (wallClock) Now() int64 { return time.Now().UnixNano() }

// TestPackages: of the log of dpkg what was installed, upgraded and removed in the last hour and during the watch, once
// each, also from a new file; nothing of an old one, of other lines, or of more than its end.
func TestPackages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, dpkgLog)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		line := func(ago time.Duration, rest string) string {
			return time.Now().Add(-ago).Format(dpkgTime) + " " + rest + "\n"
		}
		write := func(text string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		long := strings.Repeat(line(time.Minute, "upgrade lost:amd64 1 2"), 10) + strings.Repeat("x", dpkgTail) + "\n"
		first := long + line(2*time.Hour, "upgrade old:amd64 1 2") +
			line(time.Minute, "upgrade redis-server:amd64 5:7.0.14-1 5:7.0.15-1") +
			line(time.Minute, "status installed redis-server:amd64 5:7.0.15-1")
		write(first)
		rec := recording.New()
		ctx, cancel := context.WithCancel(t.Context())
		go WatchPackages(ctx, PackagesOptions{FS: Root{Root: hostfs.Root{Dir: dir}}, Clock: wallClock{}, Sink: rec})
		synctest.Wait()
		write(first + line(0, "install nftables:amd64 <none> 1.0.6"))
		await.Pass(packagesEvery)
		synctest.Wait()
		write(line(0, "remove telnet:all 0.17 <none>"))
		cancel()
		synctest.Wait()
		var got []string
		for _, e := range rec.Events {
			d := recording.DetailOf[recording.PackageDetail](e)
			got = append(got, strings.Join([]string{d.How, d.Name, d.From, d.To}, " "))
		}
		want := []string{
			"upgrade redis-server 5:7.0.14-1 5:7.0.15-1", "install nftables none 1.0.6", "remove telnet 0.17 none",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// FuzzDpkg: no line of a log is more than it says.
func FuzzDpkg(f *testing.F) {
	f.Add("2026-11-27 14:02:01 upgrade redis-server:amd64 5:7.0.14-1 5:7.0.15-1")
	f.Add("2026-11-27 14:02:01 install a <none> 1")
	f.Fuzz(func(t *testing.T, line string) {
		_, d, ok := parseDpkg(line)
		if ok != (d.How != "") || len(d.Name) > 300 || len(d.To) > 300 {
			t.Errorf("%+v", d)
		}
	})
}
