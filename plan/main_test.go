package plan

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/selfcage/selfcage/internal/fakehost"
)

func TestMain(m *testing.M) {
	text, err := os.ReadFile(filepath.Join("..", "testdata", "hosts", "debian12.txtar"))
	if err == nil {
		debian, err = fakehost.Parse(text)
	}
	if err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
