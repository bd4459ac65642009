package jsontext

import (
	"encoding/json"
	"testing"

	"github.com/selfcage/selfcage/internal/jsonw"
)

// Every byte comes back, and package jsonw writes the same.
func TestRoundTrip(t *testing.T) {
	for in, want := range map[string]string{
		"":           `""`,
		"/a b/é\n":   `"/a b/é\n"`,
		"/x\xff\"":   `{"bytes":"L3j/Ig=="}`,
		`{"bytes":1`: `"{\"bytes\":1"`,
	} {
		data, err := json.Marshal(Text(in))
		if err != nil || string(data) != want {
			t.Errorf("%q is %s, %v, want %s", in, data, err, want)
		}
		var w jsonw.Writer
		w.Text(in)
		if string(w.Bytes()) != want {
			t.Errorf("jsonw writes %s, want %s", w.Bytes(), want)
		}
		var out Text
		if err := json.Unmarshal(data, &out); err != nil || string(out) != in {
			t.Errorf("%s became %q, %v, want %q", data, out, err, in)
		}
	}
}
