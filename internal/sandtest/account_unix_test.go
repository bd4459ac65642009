//go:build unix

package sandtest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

func TestOrdinaryUser(t *testing.T) {
	a := OrdinaryUser(t)
	cmd := exec.Command("/bin/sh", "-c", "id -u; id -g; id -G; echo $HOME; : > file && echo wrote")
	cmd.SysProcAttr = a.Attr()
	cmd.Env = a.Env()
	cmd.Dir = a.WorkDir(t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := fmt.Sprintf("%d\n%d\n%d\n%s\nwrote\n", a.UID, a.GID, a.GID, a.Home)
	if got := string(out); got != want {
		t.Errorf("got %q, want %q", got, strings.TrimSpace(want))
	}
}
