// Command curate chooses and compresses the recordings of the corpus; scripts/corpus calls it.
package main

import (
	"cmp"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"slowpath/internal/lab/scenario"
)

const (
	// maxAll bounds the corpus.
	maxAll = 25_000_000
	// maxOne bounds a recording, unless its cause has no smaller one.
	maxOne = 400 << 10
	suffix = ".slowpath.zst"
)

// packed is a compressed recording.
type packed struct {
	id, cause, path string
	bytes           int64
}

func main() {
	from := flag.String("from", "", "directory of `recordings`, as lab grade --keep leaves them")
	to := flag.String("to", "", "`directory` of the corpus; what is there is removed")
	flag.Parse()
	if err := run(*from, *to, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

func run(from, to string, out io.Writer) error {
	if from == "" || to == "" {
		return errors.New("needs -from and -to")
	}
	tmp, err := os.MkdirTemp("", "corpus")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	var all []packed
	for _, sc := range scenario.Catalogue() {
		found, err := filepath.Glob(filepath.Join(from, sc.ID+"-*-1.slowpath"))
		if err != nil {
			return err
		}
		// the ids of others may begin like this one: what follows is a server's name and version
		found = slices.DeleteFunc(found, func(path string) bool {
			rest := strings.TrimPrefix(filepath.Base(path), sc.ID+"-")
			return !strings.HasPrefix(rest, "redis-") && !strings.HasPrefix(rest, "valkey-") ||
				strings.Count(rest, "-") != 2
		})
		if len(found) == 0 {
			fmt.Fprintf(out, "%s: no recording\n", sc.ID)
			continue
		}
		p, err := pack(found[0], filepath.Join(tmp, sc.ID+suffix))
		if err != nil {
			return fmt.Errorf("%s: %w", sc.ID, err)
		}
		p.id, p.cause = sc.ID, sc.Cause
		all = append(all, p)
	}
	return keep(choose(all, out), to)
}

// pack compresses a recording. Its free pages are left out.
func pack(recording, to string) (packed, error) {
	copied := to + ".tmp"
	db, err := sql.Open("sqlite", "file:"+recording+"?mode=ro")
	if err != nil {
		return packed{}, err
	}
	_, err = db.Exec("VACUUM INTO ?", copied)
	if err := errors.Join(err, db.Close()); err != nil {
		return packed{}, err
	}
	defer os.Remove(copied)
	compress := exec.Command("zstd", "-q", "-f", "-19", "--long=27", copied, "-o", to)
	if text, err := compress.CombinedOutput(); err != nil {
		return packed{}, fmt.Errorf("zstd: %w: %s", err, text)
	}
	st, err := os.Stat(to)
	if err != nil {
		return packed{}, err
	}
	return packed{path: to, bytes: st.Size()}, nil
}

// choose takes the smallest recording of each cause and healthy loads, then of the others those that are small, as long
// as there is room.
func choose(all []packed, out io.Writer) (chosen []packed) {
	slices.SortStableFunc(all, func(a, b packed) int { return cmp.Compare(a.bytes, b.bytes) })
	var sum int64
	has := map[string]bool{}
	take := func(p packed) {
		chosen = append(chosen, p)
		has[p.cause] = true
		sum += p.bytes
	}
	var rest []packed
	for _, p := range all {
		if p.cause == scenario.HealthyCause || !has[p.cause] {
			take(p)
		} else {
			rest = append(rest, p)
		}
	}
	for _, p := range rest {
		if p.bytes > maxOne || sum+p.bytes > maxAll {
			fmt.Fprintf(out, "%s: left out, %d kB\n", p.id, p.bytes>>10)
			continue
		}
		take(p)
	}
	fmt.Fprintf(out, "%d of %d recordings, %.1f MB\n", len(chosen), len(all), float64(sum)/(1<<20))
	return chosen
}

// keep replaces what the corpus has.
func keep(chosen []packed, to string) error {
	old, err := filepath.Glob(filepath.Join(to, "*"+suffix))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for _, p := range chosen {
		body, err := os.ReadFile(p.path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, p.id+suffix), body, 0o644); err != nil {
			return err
		}
	}
	return nil
}
