package verdict_test

import (
	"strings"
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// TestCostOfAWatch: where the server has little else to do, its main thread's time is said, and else that nobody knows.
func TestCostOfAWatch(t *testing.T) {
	const node = "127.0.0.1:6379"
	for ranNs, want := range map[float64]string{
		26e6: "took 2.00 ms of server time on " + node + " (0.020 %); with its calls and connections, and all else, " +
			"the main thread ran 26.00 ms (0.260 %)",
		2e9: "what its calls and connections took is not measured",
	} {
		r := recording.New()
		r.SetMeta(recording.MetaTarget, node)
		r.SetMeta(recording.MetaStart, "0")
		r.SetMeta(recording.MetaEnd, "10000000000")
		for name, value := range map[series.Name]float64{series.OwnCommandsTime: 2000, series.MainRun: ranNs} {
			for at, v := range map[int64]float64{0: 0, 10e9: value} {
				r.Sample(recording.Sample{TimeNs: at, Source: name.Source, Subject: node, Name: name.Name, Value: v})
			}
		}
		r.Index()
		d := verdict.Diagnose(r, "test")
		if len(d.Cost) == 0 || !strings.Contains(d.Cost[0].Text, want) {
			t.Errorf("%.0f ns: %+v", ranNs, d.Cost)
		}
	}
}
