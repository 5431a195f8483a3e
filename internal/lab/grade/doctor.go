package grade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"slowpath/internal/diagnose/verdict"
)

// Doctor diagnoses a target, with the arguments of `slowpath doctor`. The real one is a process of its own, so that the
// lab's load does not delay it.
type Doctor func(ctx context.Context, args []string) (verdict.Diagnosis, error)

// endTime is how long doctor may take to its end after Ctrl-C.
const endTime = 5 * time.Second

// stop ends a doctor as two Ctrl-C do, so that it leaves nothing behind. Two at once would be one.
func stop(p *os.Process) error {
	const apart = 400 * time.Millisecond
	time.AfterFunc(apart, func() { _ = p.Signal(syscall.SIGINT) }) // it may have ended
	return p.Signal(syscall.SIGINT)
}

// DoctorProcess is the doctor that runs an executable of slowpath.
func DoctorProcess(executable string) Doctor {
	return func(ctx context.Context, args []string) (verdict.Diagnosis, error) {
		var d verdict.Diagnosis
		var out, errOut bytes.Buffer
		c := exec.CommandContext(ctx, executable, append([]string{"doctor", "--json"}, args...)...)
		c.Stdout, c.Stderr = &out, &errOut
		c.Cancel = func() error { return stop(c.Process) }
		c.WaitDelay = endTime
		err := c.Run()
		var exit *exec.ExitError
		if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
			return d, fmt.Errorf("doctor: %w: %s", err, bytes.TrimSpace(errOut.Bytes()))
		}
		if err := json.Unmarshal(out.Bytes(), &d); err != nil {
			return d, fmt.Errorf("doctor printed no diagnosis: %w", err)
		}
		return d, nil
	}
}
