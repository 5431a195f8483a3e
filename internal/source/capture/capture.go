// Package capture is the source that reads files of packets, made by tcpdump, dumpcap or Wireshark: pcap and pcapng,
// also compressed. It follows TCP, finds the requests and replies of RESP in it, pairs them by their order, and writes
// what the tap would have seen of them from there into a recording.
//
// A capture has one vantage point: the host of the server, that of a client, or a place between. What the threads at
// either end did is not in it. Where packets do not say whose a time is, it stays unexplained.
//
// The file is read twice: a part of it to learn which addresses are servers and where it was made, then all of it. Its
// content is hostile: all that is kept is bounded, and what a bound leaves out is told.
package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"slowpath/internal/recording"
)

// Why a file gives no recording.
var (
	// ErrNotCapture: it has no packets, or is no capture at all.
	ErrNotCapture = errors.New("not a packet capture")
	// ErrNoCalls: no connection in it speaks RESP.
	ErrNoCalls = errors.New("no Redis traffic")
)

// Sink takes the rows. Flush waits until they are written, so that a file that is read fast does not lose any.
type Sink interface {
	recording.Sink
	Flush() error
}

// Options of reading a capture.
type Options struct {
	Slow    time.Duration // calls of this length or more are recorded one by one; 0: DefaultSlow
	Version string        // of this program
}

// Defaults and bounds.
const (
	DefaultSlow = 5 * time.Millisecond
	// samplePerSecond of the other calls are recorded, too.
	samplePerSecond = 20
	// surveyPackets are read to learn which addresses are servers, and where the capture was made.
	surveyPackets = 200_000
	// askPackets are read before the context is asked again.
	askPackets = 1 << 16
	// flushRows are written before the next packet is read.
	flushRows = 20_000
	// maxSpan is the longest time that a capture spans: that of a recording.
	maxSpan = 366 * 24 * time.Hour
)

// Summary is what was read.
type Summary struct {
	Packets   int64
	Nodes     []string // servers
	Vantage   string   // where the capture was made, in words
	Truncated string   // why the file ended early; empty: it did not
}

// Read reads a capture into a recording. The file is read from its beginning, twice.
func Read(ctx context.Context, file io.ReadSeeker, o Options, sink Sink) (Summary, error) {
	if o.Slow <= 0 {
		o.Slow = DefaultSlow
	}
	survey := newAnalysis(o, nowhere{})
	if _, err := survey.file(ctx, file, surveyPackets); err != nil || ctx.Err() != nil {
		return Summary{}, errors.Join(err, ctx.Err())
	}
	a := newAnalysis(o, sink)
	a.learn(survey)
	truncated, err := a.file(ctx, file, 0)
	if err != nil {
		return Summary{}, err
	}
	a.finish(truncated)
	s := Summary{Packets: a.seen.packets, Nodes: a.nodeNames(), Vantage: a.vantageText(), Truncated: truncated}
	switch {
	case s.Packets == 0:
		return s, fmt.Errorf("%w: it has no packets", ErrNoCalls)
	case len(s.Nodes) == 0:
		return s, fmt.Errorf("%w: %s", ErrNoCalls, a.why())
	}
	return s, sink.Flush()
}

// file reads up to `most` packets of a file, 0: all. The text says why it ended early.
func (a *analysis) file(ctx context.Context, file io.ReadSeeker, most int64) (truncated string, err error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	src, err := openPackets(file)
	if err != nil {
		return "", err
	}
	defer src.close()
	var p packet
	for most == 0 || a.seen.packets < most {
		switch err := src.next(&p); {
		case err == io.EOF:
			return "", nil
		case err != nil:
			return err.Error(), nil // what came before is whole
		}
		a.packet(&p)
		if a.rows >= flushRows {
			a.rows = 0
			if err := a.sink.Flush(); err != nil {
				return "", err
			}
		}
		if a.seen.packets%askPackets == 0 && ctx.Err() != nil {
			return "reading it was interrupted", nil
		}
	}
	return "", nil
}

// nowhere is the sink of the survey.
type nowhere struct{}

func (nowhere) Call(recording.Call, ...recording.Segment) {}
func (nowhere) Histogram(recording.Histogram)             {}
func (nowhere) Sample(recording.Sample)                   {}
func (nowhere) ConnUse(string, recording.ConnUse)         {}
func (nowhere) Event(recording.Event)                     {}
func (nowhere) Snapshot(recording.Snapshot)               {}
func (nowhere) SetMeta(string, string)                    {}
func (nowhere) Flush() error                              { return nil }
