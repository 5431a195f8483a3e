package fleet

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"reflect"
	"strings"
	"testing"
)

// connWith is a connection from which text can be read.
func connWith(text string) *conn {
	return &conn{r: bufio.NewReader(strings.NewReader(text))}
}

func TestReply(t *testing.T) {
	for _, test := range []struct {
		text string
		want any
		err  error
	}{
		{"+PONG\r\n", "PONG", nil},
		{":42\r\n", int64(42), nil},
		{"$3\r\na\r\n\r\n", "a\r\n", nil},
		{"$-1\r\n", nil, nil},
		{"*-1\r\n", nil, nil},
		{"*2\r\n:1\r\n-ERR x\r\n", []any{int64(1), refusal("ERR x")}, nil},
		{"-NOAUTH x\r\n", nil, refusal("NOAUTH x")},
		{"HTTP/1.1 400\r\n", nil, errNotRESP},
		{"\r\n", nil, errNotRESP},
		{"$-2\r\n", nil, errNotRESP},
		{"$99999999999\r\n", nil, errNotRESP},
		{"*9999999\r\n", nil, errNotRESP},
		{strings.Repeat("*1\r\n", 20), nil, errNotRESP},
		{"$3\r\na", nil, nil},
		{"", nil, nil},
		{strings.Repeat("x", 9000), nil, bufio.ErrBufferFull},
	} {
		got, err := connWith(test.text).reply(0)
		if test.err != nil && !errors.Is(err, test.err) || err == nil && !reflect.DeepEqual(got, test.want) {
			t.Errorf("%.20q: %v, %v", test.text, got, err)
		}
	}
}

func FuzzReply(f *testing.F) {
	f.Add([]byte("*2\r\n$1\r\na\r\n:1\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 1<<10 {
			return
		}
		_, _ = (&conn{r: bufio.NewReader(bytes.NewReader(body))}).reply(0)
	})
}

func TestParseStat(t *testing.T) {
	st, err := parseStat([]byte("12 (a) b (c)) S 1 12 7 34816 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 8812 0 0"))
	if err != nil || st != (procStat{state: 'S', session: 7, tty: 34816, threads: 1, start: 8812}) {
		t.Errorf("%+v, %v", st, err)
	}
	for _, bad := range []string{"", "12 (a", "12 (a) S 1 2", "1 (a) S 1 1 x 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 8812 0 " +
		"0"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (a) S 1 12 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 8812 0 0"))
	f.Fuzz(func(t *testing.T, body []byte) { _, _ = parseStat(body) })
}

func TestReplicasIn(t *testing.T) {
	list := "a 127.0.0.1:1@2 myself,slave m 0 0 1 connected\nm 127.0.0.1:3@4 master - 0 0 1 connected 0-16383\nb " +
		":0@0 slave,noaddr - 0 0 1 disconnected\n"
	if got := replicasIn(list); got != 1 {
		t.Errorf("%d", got)
	}
}

func TestQuote(t *testing.T) {
	if got := quote("a\"\\\n\xff z"); got != `"a\"\\\x0a\xff z"` {
		t.Error(got)
	}
}

func TestCertificatesAreForTheAddress(t *testing.T) {
	if _, err := newCertificates(net.ParseIP("10.0.0.1"), 0); err != nil {
		t.Error(err)
	}
}
