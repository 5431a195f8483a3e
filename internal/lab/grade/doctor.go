package grade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"

	"slowpath/internal/diagnose/verdict"
)

// Doctor diagnoses a target, with the arguments of `slowpath doctor`. The real one is a process of its own, so that the
// lab's load does not delay it.
type Doctor func(ctx context.Context, args []string) (verdict.Diagnosis, error)

// DoctorProcess is the doctor that runs an executable of slowpath.
func DoctorProcess(executable string) Doctor {
	return func(ctx context.Context, args []string) (verdict.Diagnosis, error) {
		var d verdict.Diagnosis
		var out, errOut bytes.Buffer
		c := exec.CommandContext(ctx, executable, append([]string{"doctor", "--json"}, args...)...)
		c.Stdout, c.Stderr = &out, &errOut
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
