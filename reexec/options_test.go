package reexec

import (
	"reflect"
	"testing"

	"github.com/selfcage/selfcage/policy"
)

// Each field of Options says what its name says, and nothing else: one that was forgotten would be ignored silently.
func TestOptionsSettings(t *testing.T) {
	for i := range reflect.TypeFor[Options]().NumField() {
		var o Options
		f, name := reflect.ValueOf(&o).Elem().Field(i), reflect.TypeFor[Options]().Field(i).Name
		if f.Kind() == reflect.Func || f.Kind() == reflect.Map {
			continue // what is handed in is no setting
		}
		want := "x"
		switch f.Kind() {
		case reflect.String:
			f.SetString(want)
		case reflect.Bool:
			f.SetBool(true)
			want = "1"
		default:
			f.Set(reflect.ValueOf([]string{want}))
		}
		s := o.settings()
		if name == "Name" {
			if len(s.Said()) != 0 || s.Mode.Value != "" {
				t.Errorf("Name says %v", s)
			}
			continue
		}
		said := s.Said()
		if name == "Mode" {
			said = append(said, s.Mode)
		}
		if len(said) != 1 || said[0] != (policy.Entry{Value: want, By: "Options." + name}) {
			t.Errorf("%s says %v", name, said)
			continue
		}
		if name == "PolicyFile" {
			name = "Policy" // which is the loader's name here
		}
		got := reflect.ValueOf(s).FieldByName(name)
		if got.Kind() == reflect.Slice {
			got = got.Index(0)
		}
		if got.Interface() != said[0] {
			t.Errorf("%s ends up elsewhere: %+v", name, s)
		}
	}
}
