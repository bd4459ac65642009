// Package jsontext is the string of our JSON documents, which may hold any byte, for those who read or write them with
// encoding/json. Package jsonw writes the same form.
package jsontext

import (
	"encoding/json"
	"unicode/utf8"
)

// Text is a string. One that is not UTF-8 is {"bytes": "<base64>"} in JSON, so that no byte is lost.
type Text string

// MarshalJSON keeps every byte.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string][]byte{"bytes": []byte(t)})
}

// UnmarshalJSON reads both forms.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var raw struct {
			Bytes []byte `json:"bytes"`
		}
		err := json.Unmarshal(b, &raw)
		*t = Text(raw.Bytes)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}
