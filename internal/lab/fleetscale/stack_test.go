package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestConfiguration: the Collector gets the chart's gateway as it is, with its queue on disk, its tenant and no batch
// processor.
func TestConfiguration(t *testing.T) {
	s := stack{dir: t.TempDir()}
	t.Chdir("../../..")
	options, err := s.configuration("http://127.0.0.1:8123", 0)
	if err != nil {
		t.Fatal(err)
	}
	var shipped struct {
		Exporters map[string]struct {
			Endpoint string
			Queue    struct {
				Storage string
				Size    int64 `yaml:"queue_size"`
			} `yaml:"sending_queue"`
		}
		Service struct {
			Pipelines map[string]struct{ Processors []string }
		}
	}
	var here map[string]any
	for file, into := range map[string]any{options[1]: &shipped, options[3]: &here} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.Unmarshal(text, into)
		}
		if err != nil || strings.Contains(string(text), "<no value>") {
			t.Errorf("%s: %v: %s", file, err, text)
		}
	}
	of := shipped.Exporters["clickhouse"]
	if of.Endpoint != "http://127.0.0.1:8123" || of.Queue.Storage == "" || of.Queue.Size != s.queue || s.queue == 0 {
		t.Errorf("%+v, and the values say %d", of, s.queue)
	}
	if got := fmt.Sprint(shipped.Service.Pipelines["logs"].Processors); got != "[memory_limiter transform/tenant]" {
		t.Errorf("the processors are %s", got)
	}
}
