// Package capture is the source that reads files of packets, made by tcpdump, dumpcap or Wireshark: pcap and pcapng,
// also compressed. It follows TCP, finds the requests and replies of RESP in it, pairs them by their order, and writes
// what the tap would have seen of them from there into a recording.
//
// A capture has one vantage point: the host of the server, that of a client, or a place between. What the threads at
// either end did is not in it. Where packets do not say whose a time is, it stays unexplained.
//
// A file is read twice: a part of it to learn which addresses are servers and where it was made, then all of it. Two
// captures of both ends are read once more, to find what they have in common. Their content is hostile: all that is
// kept is bounded, and what a bound leaves out is told.
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
	// ErrOverlap: two files are not of one capture, and their names say that they are.
	ErrOverlap = errors.New("the files are of the same time: if they are of two ends, give them names that differ in " +
		"more than a number")
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
	// samplePeriodNs: of the other calls one in so long a time is recorded, too.
	samplePeriodNs = int64(50e6)
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
	Truncated string   // why a file ended early; empty: none did
}

// Read reads the files of one capture into a recording: a file, or those of a ring in any order. They are read from
// their beginnings, several times.
func Read(ctx context.Context, files []File, o Options, sink Sink) (Summary, error) {
	o.setDefaults()
	survey, err := surveyOf(ctx, files, o)
	if err != nil {
		return Summary{}, err
	}
	a := newAnalysis(o, sink)
	a.learn(survey)
	return a.read(ctx, files)
}

func (o *Options) setDefaults() {
	if o.Slow <= 0 {
		o.Slow = DefaultSlow
	}
}

// surveyOf reads the beginning of a capture.
func surveyOf(ctx context.Context, files []File, o Options) (*analysis, error) {
	survey := newAnalysis(o, nowhere{})
	_, err := survey.packets(ctx, files, surveyPackets)
	return survey, errors.Join(err, ctx.Err())
}

// read reads a capture wholly.
func (a *analysis) read(ctx context.Context, files []File) (Summary, error) {
	truncated, err := a.packets(ctx, files, 0)
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
	return s, a.sink.Flush()
}

// packets reads up to `most` packets of files, 0: all. The text says what could not be read.
func (a *analysis) packets(ctx context.Context, files []File, most int64) (truncated string, err error) {
	src := newChain(files)
	defer src.close()
	var p packet
	for most == 0 || a.seen.packets < most {
		if err := src.next(&p); err == io.EOF {
			break
		} else if err != nil {
			return "", err
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
	src.close()
	a.seen.dropped = src.dropped
	return src.truncated(), nil
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
