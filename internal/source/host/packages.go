package host

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// PackagesOptions are those of WatchPackages.
type PackagesOptions struct {
	FS    FS
	Clock clock.Clock
	Sink  recording.Sink
	Every time.Duration // a minute when 0
}

const (
	dpkgLog = "/var/log/dpkg.log"
	rpmDB   = "/var/lib/rpm/rpmdb.sqlite"

	packagesEvery  = time.Minute
	packagesBefore = time.Hour // upgrades so long before the watch are recorded
	packagesMost   = 200       // rows of a watch
	dpkgTail       = 64 << 10  // bytes of the log that are read at once
	dpkgTime       = "2006-01-02 15:04:05"
)

// WatchPackages records which packages of this host were installed, upgraded or removed, up to an hour before and
// during the watch, by the log of dpkg; of rpm only that its database was written. Two files are looked at once a
// minute.
func WatchPackages(ctx context.Context, o PackagesOptions) {
	p := packages{PackagesOptions: o, since: time.Unix(0, o.Clock.Now()).Add(-packagesBefore)}
	if p.Every <= 0 {
		p.Every = packagesEvery
	}
	p.rpm = p.since
	p.look()
	tick := time.NewTicker(p.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			p.look()
			return
		case <-tick.C:
			p.look()
		}
	}
}

type packages struct {
	PackagesOptions
	since time.Time // what happened before is recorded
	size  int64     // of the log of dpkg, up to where it was read
	rpm   time.Time // when rpm's database was written last
	rows  int
}

func (p *packages) look() {
	if f, err := p.FS.OpenRegular(dpkgLog, false); err == nil {
		p.readLog(f)
		f.Close()
	}
	if info, err := p.FS.Stat(rpmDB); err == nil && info.ModTime().After(p.rpm) {
		p.rpm = info.ModTime()
		p.row(p.rpm, recording.PackageDetail{How: "written", Name: "the rpm database"})
	}
}

// readLog reads what was added to the log of dpkg. One that is shorter than before is a new one.
func (p *packages) readLog(f *os.File) {
	info, err := f.Stat()
	if err != nil || info.Size() == p.size {
		return
	}
	from := p.size
	if info.Size() < from {
		from = 0
	}
	from = max(from, info.Size()-dpkgTail)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return
	}
	p.size = info.Size()
	for line := range strings.Lines(string(text)) {
		if at, d, ok := parseDpkg(line); ok && !at.Before(p.since) {
			p.row(at, d)
		}
	}
}

func (p *packages) row(at time.Time, d recording.PackageDetail) {
	if p.rows++; p.rows > packagesMost {
		return
	}
	d.AtNs = at.UnixNano()
	p.Sink.Event(recording.Event{
		TimeNs: p.Clock.Now(), Source: recording.SourceHost, Subject: recording.SubjectMachine,
		Kind: recording.KindPackage, Detail: recording.Detail(d),
	})
}

// parseDpkg reads a line such as "2026-11-27 14:02:01 upgrade redis-server:amd64 5:7.0.14-1 5:7.0.15-1". Its time is
// that of the host, without a zone.
func parseDpkg(line string) (at time.Time, d recording.PackageDetail, ok bool) {
	f := strings.Fields(line)
	if len(f) != 6 || f[2] != "upgrade" && f[2] != "install" && f[2] != "remove" {
		return at, d, false
	}
	at, err := time.ParseInLocation(dpkgTime, f[0]+" "+f[1], time.Local)
	if err != nil {
		return at, d, false
	}
	name, _, _ := strings.Cut(f[3], ":")
	for _, text := range []*string{&name, &f[4], &f[5]} {
		*text = strings.ToValidUTF8((*text)[:min(len(*text), 100)], "?")
	}
	d = recording.PackageDetail{How: f[2], Name: name, From: strings.Trim(f[4], "<>"), To: strings.Trim(f[5], "<>")}
	return at, d, true
}
