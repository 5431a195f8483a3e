// Package benchmark has drawn incidents of servers with their measured truth, so that any tool can be graded on them:
// what operators would have had at hand (native commands before, during and after, a recording, a packet capture), and
// apart from that what each fault cost the callers by their own clocks.
package benchmark

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/klauspost/compress/zstd"

	"slowpath/internal/format"
	"slowpath/internal/lab/random"
	"slowpath/internal/outfile"
	"slowpath/internal/recording"
)

// Schemas of the documents of a benchmark.
const (
	IncidentSchema = "slowpath.benchmark-incident/v1"
	AnswerSchema   = "slowpath.benchmark-answer/v1"
)

// Names of the files of an incident, below its directory; the truth is in a directory of its own.
const (
	incidentFile  = "incident.json"
	recordingFile = "recording.slowpath"
	packedSuffix  = ".zst"
	captureFile   = "capture.pcapng"
	truthDir      = "truth"
)

// Incident is what a tool is told of an incident beside its files.
type Incident struct {
	Schema string `json:"schema"`
	ID     string `json:"incident"`
	Server string `json:"server"` // its version
	// Address is that of the server, Target what the callers dial; a proxy where they differ.
	Address string `json:"address"`
	Target  string `json:"target"`
	// Callers are the programs of the callers.
	Callers []string `json:"callers"`
	Files   []string `json:"files"`
}

// Answer is what a tool says of an incident.
type Answer struct {
	Schema   string `json:"schema"`
	Tool     string `json:"tool"`
	Incident string `json:"incident"`
	// Healthy: nobody lost time that they notice. Without it and without causes a tool cannot tell.
	Healthy bool          `json:"healthy"`
	Causes  []AnswerCause `json:"causes"` // the most important first
}

// AnswerCause is a cause that a tool names.
type AnswerCause struct {
	Cause string `json:"cause"` // an id of docs/causes.md
	// Share is its share of the time that callers lost, 0..1, and Confidence how sure the tool is; 0: it does not say.
	Share      float64 `json:"share"`
	Confidence float64 `json:"confidence"`
	// Because is the cause of which it is a consequence.
	Because string `json:"because,omitempty"`
	// Culprit is who has to change: the name that a client gave itself (CLIENT SETNAME), or its address or process.
	Culprit string `json:"culprit,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

// mostAnswer bounds a line of a file of answers, in bytes.
const mostAnswer = 1 << 20

// ReadAnswers reads answers, a JSON document per line.
func ReadAnswers(r io.Reader) (out []Answer, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, mostAnswer)
	for n := 1; lines.Scan(); n++ {
		var a Answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil || a.Schema != AnswerSchema || a.Incident == "" {
			return nil, fmt.Errorf("line %d is no %s with an incident (%v)", n, AnswerSchema, err)
		}
		if a.Tool == "" || strings.ContainsFunc(a.Tool, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return nil, fmt.Errorf("line %d: tool %q has to be a name that can be printed", n, a.Tool)
		}
		out = append(out, a)
	}
	return out, lines.Err()
}

// WriteAnswers writes answers, a line each.
func WriteAnswers(w io.Writer, answers []Answer) error {
	e := json.NewEncoder(w)
	for _, a := range answers {
		if err := e.Encode(a); err != nil {
			return err
		}
	}
	return nil
}

// ErrNoIncidents is that of a directory without a benchmark.
var ErrNoIncidents = errors.New("has no incident of a benchmark")

// Set is a directory of incidents.
type Set struct{ Dir string }

// mostFile bounds a file of an incident other than its recording and packets, in bytes.
const mostFile = 64 << 20

// read reads such a file.
func (s Set) read(id, name string) ([]byte, error) {
	f, err := os.Open(s.path(id, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, mostFile+1))
	if err == nil && len(body) > mostFile {
		err = fmt.Errorf("%s is longer than %s", f.Name(), format.Bytes(mostFile))
	}
	return body, err
}

func (s Set) path(id string, name ...string) string {
	return filepath.Join(append([]string{s.Dir, id}, name...)...)
}

// Incidents are all of the set, in the order of their ids.
func (s Set) Incidents() (all []Incident, err error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		body, err := s.read(e.Name(), incidentFile)
		if !e.IsDir() || errors.Is(err, os.ErrNotExist) {
			continue
		}
		var in Incident
		if err == nil {
			err = json.Unmarshal(body, &in)
		}
		if err != nil || in.Schema != IncidentSchema || in.ID != e.Name() {
			return nil, fmt.Errorf("%s is no %s (%v)", s.path(e.Name(), incidentFile), IncidentSchema, err)
		}
		all = append(all, in)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s %w: make some with slowpath lab benchmark make", s.Dir, ErrNoIncidents)
	}
	slices.SortFunc(all, func(a, b Incident) int { return number(a.ID) - number(b.ID) })
	return all, nil
}

// recording reads that of an incident, which may be compressed.
func (s Set) recording(id string) (rec *recording.Recording, err error) {
	path := s.path(id, recordingFile)
	packed, err := os.Open(path + packedSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return recording.Open(path)
	}
	if err != nil {
		return nil, err
	}
	defer packed.Close()
	z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostFile))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	dir, err := os.MkdirTemp("", "slowpath-benchmark-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path = filepath.Join(dir, recordingFile)
	err = outfile.Write(path, func(w io.Writer) error {
		n, err := io.Copy(w, io.LimitReader(z, mostFile+1))
		if err == nil && n > mostFile {
			err = fmt.Errorf("%s is longer than %s", packed.Name(), format.Bytes(mostFile))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return recording.Open(path)
}

// number is that of an incident: its seed.
func number(id string) int {
	n, _ := strconv.Atoi(id)
	return n
}

// Truth is what was measured of an incident.
func (s Set) Truth(id string) (r random.Run, err error) {
	path := s.path(truthDir, id+".json")
	body, err := s.read(truthDir, id+".json")
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(body, &r); err != nil || len(r.Truth) == 0 {
		return r, fmt.Errorf("%s is no truth of an incident (%v)", path, err)
	}
	r.Settle()
	return r, nil
}

// write writes a document of the set, whole or not at all.
func (s Set) write(path string, document any) error {
	return outfile.Write(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(document)
	})
}
