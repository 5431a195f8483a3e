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
	// Because is the id of the root cause that this finding is a consequence of, if any.
	Because string `json:"because,omitempty"`
	// ClaimedShare is the part of ExcessShare that rests on the time of slow calls alone, and not on a pattern of all
	// calls: of several nodes, these parts add up.
	ClaimedShare float64 `json:"-"`
	// Leads: the finding comes before the causes that it is made of, as most slow calls show its pattern.
	Leads bool `json:"-"`
	// Independent: the evidence says that it is no consequence of any of the causes in After.
	Independent bool `json:"-"`
	// IndependentOf are the causes in After of which the evidence says that it is no consequence.
	IndependentOf []string `json:"-"`
}

// Evidence is a fact with where it came from.
type Evidence struct {
	Source string  `json:"source"`
	Text   string  `json:"text"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
}
