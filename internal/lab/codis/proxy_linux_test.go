package codis_test

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"slowpath/internal/lab/codis"
	"slowpath/internal/wire/resp"
)

// TestSlot: by `printf %s KEY | gzip -c | tail -c8 | od -An -tu4`, whose first number is the CRC-32.
func TestSlot(t *testing.T) {
	for key, want := range map[string]int{
		"123456789": 0xCBF43926 % codis.Slots, // the check value of CRC-32
		"":          0,
		"a":         0xE8B7BE43 % codis.Slots,
		"x{a}y":     0xE8B7BE43 % codis.Slots,
		"{}a":       0, // an empty tag counts
		"{a":        codis.Slot([]byte("{a")),
		"{a}{b}":    0xE8B7BE43 % codis.Slots,
	} {
		if got := codis.Slot([]byte(key)); got != want {
			t.Errorf("%q: slot %d, want %d", key, got, want)
		}
	}
}

func TestParseRange(t *testing.T) {
	for text, want := range map[string]codis.Range{"0-511": {0, 511}, "7": {7, 7}, "1023-1023": {1023, 1023}} {
		if got, err := codis.ParseRange(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-", "5-4", "0-1024", "-1", "a", "0-5-7"} {
		if got, err := codis.ParseRange(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// client is a connection to the proxy.
type client struct {
	net.Conn
	in *resp.Reader
}

func connect(addr string) (client, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return client{}, err
	}
	return client{conn, resp.NewReader(conn, resp.DefaultLimits)}, conn.SetDeadline(time.Now().Add(time.Minute))
}

func (c client) do(args ...string) (string, error) {
	if _, err := c.Write(resp.AppendCommand(nil, args...)); err != nil {
		return "", err
	}
	v, err := c.in.Read()
	return show(v), err
}

// show is a reply as text.
func show(v resp.Value) string {
	if v.Kind != resp.Array {
		if v.IsNull() {
			return "nil"
		}
		return v.Text()
	}
	var parts []string
	for _, e := range v.Elems {
		parts = append(parts, show(e))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

func dial(t *testing.T, addr string) client {
	t.Helper()
	c, err := connect(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// FuzzClient: whatever a client sends, the proxy serves others.
func FuzzClient(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"))
	f.Add([]byte("PING\r\n"))
	f.Add([]byte("*1\r\n:5\r\n"))
	f.Add([]byte("*0\r\n*-1\r\n$-1\r\n"))
	f.Add([]byte("*2\r\n$12\r\nSLOTSMIGRATE\r\n$0\r\n\r\n"))
	p, err := codis.New([]string{"127.0.0.1:1"})
	if err != nil {
		f.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	go p.Serve(f.Context(), l)
	f.Fuzz(func(t *testing.T, in []byte) {
		c := dial(t, l.Addr().String())
		if _, err := c.Write(in); err != nil {
			return
		}
		owners := dial(t, l.Addr().String())
		if got, err := owners.do("SLOTSOWNERS"); err != nil || !bytes.Contains([]byte(got), []byte("0 1023")) {
			t.Errorf("%q, %v", got, err)
		}
	})
}
