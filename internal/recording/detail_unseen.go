package recording

// Unseen is the Detail of an unseen event: what a source missed or could not keep, how much of how much, why, and what
// would help. Of several events of a source about the same, the last one counts.
type Unseen struct {
	What   string  `json:"what"`
	Count  float64 `json:"count"`
	Of     float64 `json:"of"` // the whole: what was seen, and Count
	Why    string  `json:"why"`
	Enable string  `json:"enable,omitempty"`
	// Weighted says that what was kept stands for the rest: the whole was counted, and a part of it recorded one by
	// one. A verdict rests on such a part as on the whole.
	Weighted bool `json:"weighted,omitempty"`
}

// Share is the part of the whole that was not seen, from 0 to 1.
func (u Unseen) Share() float64 {
	if u.Count <= 0 || u.Of <= 0 {
		return 0
	}
	return min(u.Count/u.Of, 1)
}
