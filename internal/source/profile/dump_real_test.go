package profile

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"slowpath/internal/house/needs"

	"slowpath/internal/house/await"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

const sleeper = `public class Sleeper {
  static synchronized void held() throws Exception { System.out.println("ready"); System.in.read(); }
  public static void main(String[] args) throws Exception { held(); }
}
`

func TestThreadsOfAJVM(t *testing.T) {
	needs.Real(t, needs.Command("java", "openjdk-17-jdk-headless"), needs.Command("javac", "openjdk-17-jdk-headless"))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Sleeper.java"), []byte(sleeper), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "javac", "-d", dir, filepath.Join(dir,
		"Sleeper.java")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "java", "-Xmx32m", "-cp", dir, "Sleeper")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); _ = cmd.Wait() })
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	sink, end := profiling(t, 0, one(t, strconv.Itoa(cmd.Process.Pid)))
	await.Until(t, "a dump", func() bool { return slices.Contains(sink.kinds(), recording.ProfileThreads) })
	end()
	p, err := stacks.Read(sink.rec.Profiles[0].Pprof)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(p.Stacks, func(s stacks.Stack) bool {
		return len(s.Frames) > 2 && s.Frames[0] == "Sleeper.main" && s.Frames[1] == "Sleeper.held"
	}) {
		t.Errorf("%+v", p)
	}
}
