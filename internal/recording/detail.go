package recording

import (
	"encoding/json"
)

// Detail encodes the detail of an event, or the body of a snapshot. The types of this package always encode.
func Detail(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("recording: detail that does not encode: " + err.Error())
	}
	return string(b)
}

// DetailOf decodes the detail of an event; one that does not decode, of a damaged recording, gives the zero value.
func DetailOf[T any](e Event) T {
	var v T
	_ = json.Unmarshal([]byte(e.Detail), &v)
	return v
}

// BodyOf decodes the JSON body of a snapshot; false if it does not decode, as in a damaged recording.
func BodyOf[T any](s Snapshot) (T, bool) {
	var v T
	err := json.Unmarshal([]byte(s.Body), &v)
	return v, err == nil
}
