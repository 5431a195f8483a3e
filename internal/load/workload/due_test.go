package workload

import "testing"

func TestDueOf(t *testing.T) {
	for message, want := range map[string]int64{
		"1795292148667000123:abc": 1795292148667000123, "0000000000000000007:": 7,
		"": 0, "1795292148667000123": 0, "1795292148667000123 abc": 0, "179529214866700012x:abc": 0,
		"0000000000000000000:abc": 0, "-795292148667000123:a": 0,
		"9999999999999999999:more than an int64 has": 0,
	} {
		if got, ok := DueOf([]byte(message)); ok != (want > 0) || ok && got != want {
			t.Errorf("%q: %d, %v", message, got, ok)
		}
	}
	s := compiled(t, Options{Commands: []string{"publish"}, Sizes: FixedSize(5)}).Stream(1, 0, 1)
	s.Due = 1795292148667000123
	b, _ := s.Next(nil)
	if got, _ := DueOf(b[len(b)-len("1795292148667000123:xxxxx\r\n"):]); got != s.Due {
		t.Errorf("%q", b)
	}
}
