package manifest

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func against(t *testing.T, s *jsonschema.Schema, data []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	must(t, err)
	return s.Validate(v)
}

// What Collect writes is what the published schema describes, and the schema allows nothing else.
func TestSchema(t *testing.T) {
	s, err := jsonschema.NewCompiler().Compile("../docs/manifest.schema.json")
	must(t, err)
	dir := t.TempDir()
	p := aPlan(t, dir)
	p.Mounts[1].Target, p.Mounts[1].Source = dir+"/\xff", dir+"/\xff"
	data := Collect(p, os.Getpid())
	if err := against(t, s, data); err != nil {
		t.Errorf("%v in\n%s", err, data)
	}
	if !bytes.Contains(data, []byte(`{"bytes":"`)) {
		t.Error("no path of it is not UTF-8")
	}
	if err := against(t, s, Collect(p, 1<<30)); err != nil {
		t.Errorf("of a process that is gone: %v", err)
	}
	for name, change := range map[string][2]string{
		"another version": {`"version":1`, `"version":2`}, "a key more": {`"tools":[`, `"more":1,"tools":[`},
		"a list that is null": {`"unknown":[`, `"unknown":null,"x":[`},
		"another role":        {`"role":"program"`, `"role":"other"`}, "a size below zero": {`"size":`, `"size":-`},
	} {
		changed := strings.Replace(string(data), change[0], change[1], 1)
		if changed == string(data) {
			t.Errorf("%s: nothing to change", name)
		} else if against(t, s, []byte(changed)) == nil {
			t.Errorf("%s: the schema allows it", name)
		}
	}
}
