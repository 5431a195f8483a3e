package engine

import (
	"testing"
)

// TestPayload finds the text of messages, and nothing in what is none.
func TestPayload(t *testing.T) {
	for message, want := range map[string]string{
		"*4\r\n$8\r\npmessage\r\n$1\r\np\r\n$1\r\nc\r\n$5\r\na\r\nbc\r\n": "a\r\nbc",
		">4\r\n$8\r\npmessage\r\n$1\r\np\r\n$1\r\nc\r\n$0\r\n\r\n":        "",
		"*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n":                                  "", "*4\r\n$9\r\npmessage": "",
		"+PONG\r\n": "", "": "",
	} {
		if got := payload([]byte(message)); string(got) != want {
			t.Errorf("%q: %q", message, got)
		}
	}
}
