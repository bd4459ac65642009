package jsonw

import (
	"encoding/base64"
	"encoding/json"
	"testing"
)

// What is written is what encoding/json reads, for every byte.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", "/a b/\n\"\\", "\xff", "\x00\x1f\x7f", "ü\u2028", "ab\xff", "abc\xfe", "\xff\xfe\xfd\xfc"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var w Writer
		w.Open('{')
		w.Key("k" + s[:0])
		w.Open('[')
		w.Text(s)
		w.Int(-3)
		w.Bool(true)
		w.Close(']')
		w.Line()
		w.Key("n")
		w.Int(1)
		w.Pair("empty", "")
		w.Pair("p", "v")
		w.Close('}')
		var got struct {
			K []json.RawMessage
			N int
			P string
		}
		if err := json.Unmarshal(w.Bytes(), &got); err != nil {
			t.Fatalf("%v in %s", err, w.Bytes())
		}
		var back string
		if got.K[0][0] == '{' {
			var b struct{ Bytes string }
			if err := json.Unmarshal(got.K[0], &b); err != nil {
				t.Fatal(err)
			}
			raw, err := base64.StdEncoding.DecodeString(b.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			back = string(raw)
		} else if err := json.Unmarshal(got.K[0], &back); err != nil {
			t.Fatal(err)
		}
		if back != s || got.N != 1 || got.P != "v" {
			t.Errorf("%q came back as %q in %s", s, back, w.Bytes())
		}
	})
}
