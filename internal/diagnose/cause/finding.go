package cause

// Finding is a cause with the share of the excess that it explains.
type Finding struct {
	Cause       string     `json:"cause"`
	Layer       string     `json:"layer"`
	Title       string     `json:"title"`
	SlowCalls   int        `json:"slow_calls"`
	Of          int        `json:"of"`
	ExcessShare float64    `json:"excess_share"` // 0..1 of the excess of all slow calls
	Confidence  float64    `json:"confidence"`   // 0..1
	Evidence    []Evidence `json:"evidence"`
	Against     []Evidence `json:"against"`
	Fix         []string   `json:"fix"`
	See         []string   `json:"see"`
	// Because is the id of the root cause of which this finding is a consequence, if any.
	Because string `json:"because,omitempty"`
	// ClaimedShare is the part of ExcessShare that comes from the time of slow calls alone, not from a pattern of all
	// calls; over several nodes these parts add up.
	ClaimedShare float64 `json:"-"`
	// Leads: the finding comes before the causes that it consists of, since most slow calls show its pattern.
	Leads bool `json:"-"`
	// Independent: by the evidence it is no consequence of any cause in After.
	Independent bool `json:"-"`
	// IndependentOf are the causes in After of which, by the evidence, it is no consequence.
	IndependentOf []string `json:"-"`
}

// Evidence is a fact and its source.
type Evidence struct {
	Source string  `json:"source"`
	Text   string  `json:"text"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
}
