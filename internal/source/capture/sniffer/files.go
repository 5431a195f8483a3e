package sniffer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"slowpath/internal/outfile"
)

// Files are a number of files of which the oldest is removed when another is begun.
type Files struct {
	Path      string // of the files, without their number: redis.pcapng gives redis-00001.pcapng
	Number    int    // at most
	FileBytes int64  // after which the next file is begun
}

// spillBytes of packets are collected before they are written.
const spillBytes = 64 << 10

// WriteError says that a file could not be written any more. The packets before are in it, whole.
type WriteError struct {
	Path string
	err  error
}

func (e *WriteError) Error() string {
	if errors.Is(e.err, syscall.ENOSPC) || errors.Is(e.err, syscall.EDQUOT) || errors.Is(e.err, syscall.EFBIG) {
		return fmt.Sprintf("%s: there is no space for more: %s; free some, or give a smaller ring (--ring, "+
			"--file-size)", e.Path, reason(e.err))
	}
	return fmt.Sprintf("writing %s: %s", e.Path, reason(e.err))
}

func (e *WriteError) Unwrap() error { return e.err }

// reason is an error without the name of the file.
func reason(err error) string {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// writer writes a ring.
type writer struct {
	Files
	link    pcapgo.NgInterface
	about   pcapgo.NgSectionInfo
	number  int      // of the newest file
	paths   []string // that are there
	f       *os.File
	out     *pcapgo.NgWriter
	buf     bytes.Buffer
	written int64 // of this file
	held    int64 // packets in buf
	packets int64 // that are written
	removed int
	dropped func() int64 // packets that the kernel has not kept
	told    int64        // of these, in files that have ended
}

// extension is that of the files, as they are pcapng whatever their name says.
const extension = ".pcapng"

// stem is the path without extension.
func (r Files) stem() string {
	for _, e := range []string{extension, ".pcap", ".cap"} {
		if s, ok := strings.CutSuffix(r.Path, e); ok && filepath.Base(s) != string(filepath.Separator) {
			return s
		}
	}
	return r.Path
}

// Pattern names all files of the ring, for a shell.
func (r Files) Pattern() string { return r.stem() + "-*" + extension }

// FileName is the name of a file by its number.
func (r Files) FileName(n int) string { return fmt.Sprintf("%s-%05d%s", r.stem(), n, extension) }

// special are the characters of a pattern.
var special = regexp.MustCompile(`[\\*?\[]`)

// free refuses a name of which there are files: they would be taken for parts of the same capture.
func (r Files) free() error {
	there, err := filepath.Glob(special.ReplaceAllString(r.stem(), `\$0`) + "-[0-9][0-9][0-9][0-9][0-9]*" + extension)
	if err == nil && len(there) > 0 {
		err = fmt.Errorf("%s is there already: remove it, or give another name (-o)", there[0])
	}
	return err
}

// next ends the file and begins another.
func (w *writer) next() error {
	if err := w.close(); err != nil {
		return err
	}
	for len(w.paths) >= w.Number {
		if err := outfile.Remove(w.paths[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
			return &WriteError{w.paths[0], err}
		}
		w.paths = w.paths[1:]
		w.removed++
	}
	w.number++
	path := w.FileName(w.number)
	f, err := outfile.Create(path)
	if err != nil {
		return &WriteError{path, err}
	}
	w.paths = append(w.paths, path)
	w.f, w.written = f, 0
	w.out, err = pcapgo.NewNgWriterInterface(&w.buf, w.link, pcapgo.NgWriterOptions{SectionInfo: w.about})
	if err = errors.Join(err, w.spill()); err != nil { // not even its header
		w.f.Close()
		outfile.Remove(path)
		w.f, w.paths = nil, w.paths[:len(w.paths)-1]
	}
	return err
}

// packet writes a packet.
func (w *writer) packet(ci gopacket.CaptureInfo, data []byte) error {
	if w.written+int64(w.buf.Len()) >= w.FileBytes {
		if err := w.next(); err != nil {
			return err
		}
	}
	ci.InterfaceIndex = 0 // tcpdump reads no files of several interfaces with this link
	if err := w.out.WritePacket(ci, data); err != nil {
		return err
	}
	w.held++
	if err := w.out.Flush(); err != nil || w.buf.Len() < spillBytes { // into buf
		return err
	}
	return w.spill()
}

// spill writes what was collected. What cannot be written wholly is left out, so that the file ends with a packet.
func (w *writer) spill() error {
	if w.f == nil {
		return nil
	}
	if err := w.out.Flush(); err != nil {
		return err
	}
	n, err := w.f.Write(w.buf.Bytes())
	if err != nil {
		_ = w.f.Truncate(w.written)
		_, _ = w.f.Seek(w.written, io.SeekStart)
		err = &WriteError{w.f.Name(), err}
	} else {
		w.written += int64(n)
		w.packets += w.held
	}
	w.held = 0
	w.buf.Reset()
	return err
}

// close ends a file. It has how many packets the kernel did not keep while it was written.
func (w *writer) close() error {
	if w.f == nil {
		return nil
	}
	dropped := w.dropped()
	err := w.out.WriteInterfaceStats(0, pcapgo.NgInterfaceStatistics{
		LastUpdate: time.Now(), PacketsReceived: pcapgo.NgNoValue64, PacketsDropped: uint64(dropped - w.told),
	})
	w.told = dropped
	err = errors.Join(err, w.spill())
	if e := w.f.Close(); e != nil && err == nil {
		err = &WriteError{w.f.Name(), e}
	}
	w.f = nil
	return err
}

// link is what all packets begin with: their IP header.
func link(name string, filter string, snap int) pcapgo.NgInterface {
	return pcapgo.NgInterface{
		Name: name, Filter: filter, LinkType: layers.LinkTypeRaw, SnapLength: uint32(snap), TimestampResolution: 9,
	}
}
