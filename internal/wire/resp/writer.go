package resp

import "io"

// Writer collects commands and sends them in one write at [Writer.Flush]: a pipeline. It is not safe for use by several
// goroutines.
type Writer struct {
	dst io.Writer
	buf []byte
}

// NewWriter returns a Writer to dst.
func NewWriter(dst io.Writer) *Writer { return &Writer{dst: dst} }

// Command adds a command to what is sent next.
func (w *Writer) Command(args ...string) { w.buf = AppendCommand(w.buf, args...) }

// CommandBytes adds a command to what is sent next.
func (w *Writer) CommandBytes(args ...[]byte) { w.buf = AppendCommandBytes(w.buf, args...) }

// Buffered returns the number of bytes that the next Flush sends.
func (w *Writer) Buffered() int { return len(w.buf) }

// Flush sends what was added. After an error the peer may have a part of it: the connection is of no more use.
func (w *Writer) Flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	n, err := w.dst.Write(w.buf)
	if err == nil && n < len(w.buf) {
		err = io.ErrShortWrite
	}
	w.buf = w.buf[:0]
	return err
}
