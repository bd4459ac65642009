package env_test

import (
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/selfcage/selfcage/env"
	"github.com/selfcage/selfcage/policy"
)

// The settings that the clean level lets through are those of package policy, whose fields are called as the variables.
func TestSettingsArePolicys(t *testing.T) {
	settings, variables := reflect.TypeFor[policy.Settings](), 0
	for i := range settings.NumField() {
		field := settings.Field(i).Name
		if field == "Note" || field == "Confined" {
			continue // nobody says these in a variable
		}
		variables++
		if name := "X_SANDBOX_" + variableName(field); !env.CageSetting(name) {
			t.Errorf("%s is dropped", name)
		}
	}
	if variables != len(env.CageSettings) {
		t.Errorf("%d settings here, %d in package policy", len(env.CageSettings), variables)
	}
	for _, name := range env.CageSettings {
		if s, err := policy.FromEnv("X_SANDBOX_", []string{"X_SANDBOX_" + name + "=1"}); err == nil && reflect.ValueOf(s).IsZero() {
			t.Errorf("package policy does not read %s", name)
		}
	}
}

// variableName is TMP_SIZE for TmpSize, and GPU for GPU.
func variableName(field string) string {
	var b strings.Builder
	for i, c := range field {
		if i > 0 && unicode.IsUpper(c) && unicode.IsLower(rune(field[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(c))
	}
	return b.String()
}
