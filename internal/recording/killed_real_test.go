package recording

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// writeForever is the child that TestKilledWriter kills.
func writeForever(path string) {
	w, err := Create(path, 0)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := int64(0); ; i++ {
		w.Sample(Sample{TimeNs: i, Source: SourceServer, Subject: "a:1", Name: "n", Value: float64(i)})
		w.Call(Call{Source: SourceProbe, Op: "PING", IntendedNs: i, StartNs: i, EndNs: i + 1, Node: "a:1"})
		await.Pass(50 * time.Microsecond)
	}
}

// TestKilledWriter: SIGKILL in the middle of writing: the file opens, and what was written before the last flush is
// there.
func TestKilledWriter(t *testing.T) {
	needs.Real(t)
	if path := os.Getenv("SLOWPATH_TEST_WRITE_FOREVER"); path != "" {
		writeForever(path)
	}
	path := file(t)
	c := exec.Command(os.Args[0], "-test.run=^TestKilledWriter$")
	c.Env = append(os.Environ(), "SLOWPATH_TEST_WRITE_FOREVER="+path)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "something is in the WAL", func() bool {
		st, err := os.Stat(path + "-wal")
		return err == nil && st.Size() > 200_000
	})
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // killed
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Series(SourceServer, "a:1", "n")
	if len(s) < 100 || len(r.Calls) < 100 {
		t.Fatalf("%d samples, %d calls", len(s), len(r.Calls))
	}
	for i, p := range s {
		if p.Value != float64(i) {
			t.Fatalf("sample %d is %v", i, p.Value)
		}
	}
	if _, end := r.Window(); end <= 0 {
		t.Error("a killed recording has no end")
	}
}
