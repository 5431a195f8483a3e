package recording

// Unseen is the Detail of an unseen event: what a source missed or could not keep, how much of how much, why, and what
// would help. Of several events of a source about the same, the last one counts.
type Unseen struct {
	What   string  `json:"what"`
	Count  float64 `json:"count"`
	Of     float64 `json:"of"` // the whole: what was seen, and Count
	Why    string  `json:"why"`
	Enable string  `json:"enable,omitempty"`
	// Counted says that what it is about was counted all the same: only a detail is missing, or a part was recorded
	// one by one and stands for the rest. It is no reason to doubt a verdict.
	Counted bool `json:"counted,omitempty"`
}

// Share is the part of the whole that was not seen, from 0 to 1.
func (u Unseen) Share() float64 {
	if u.Count <= 0 || u.Of <= 0 {
		return 0
	}
	return min(u.Count/u.Of, 1)
}
