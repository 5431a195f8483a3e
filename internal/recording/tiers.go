package recording

// Tier is what a recording is judged by.
type Tier struct {
	Name    string   // T2, T1, T0
	Without []string // sources whose rows are left out
}

// Tiers are all of them, the one that sees most first.
var Tiers = []Tier{
	{Name: "T2"},
	{Name: "T1", Without: []string{SourceTap}},
	{Name: "T0", Without: []string{SourceTap, SourceHost}},
}
