//go:build linux

package tap

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// TestOwnTLS: a program that brings its own TLS, such as this one, is no source of names, and that is said once.
func TestOwnTLS(t *testing.T) {
	// never attached
	w := newPlaintextWatch(map[string]*ebpf.Program{kernelProgOnSslCall: {}, kernelProgOnSslReturn: {}}, host.Root{})
	if err := w.watch(os.Getpid(), roleServer); !errors.Is(err, errOwnTLS) {
		t.Errorf("this program as a server: %v", err)
	}
	sink := recording.New()
	watch := &Tap{
		Options: Options{Clock: clock.New(), Sink: sink}, plaintexts: w,
		recorder: &recorder{names: map[uint32]string{uint32(os.Getpid()): "tap.test"}},
	}
	for range 2 {
		watch.watchPlaintext(&kernelAddr{Role: roleClient, Tls: 1}, uint32(os.Getpid()), Node{Address: "far:6379"})
	}
	if len(sink.Events) != 1 || sink.Events[0].Kind != recording.KindBlindSpot ||
		!strings.Contains(string(sink.Events[0].Detail), "names of commands under TLS of tap.test") {
		t.Errorf("%v", sink.Events)
	}
}
