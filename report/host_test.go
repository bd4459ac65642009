package report

import (
	"runtime"
	"testing"
)

func TestUserNamespaces(t *testing.T) {
	for _, tt := range []struct {
		s    sysctls
		root bool
		want UserNamespaces
	}{
		{sysctls{}, false, ""},
		{sysctls{maximum: "many"}, false, ""},
		{sysctls{maximum: "0"}, true, Forbidden},
		{sysctls{maximum: "1000"}, false, NotForbidden},
		{sysctls{maximum: "1000", clone: "0"}, false, Forbidden},
		{sysctls{maximum: "1000", clone: "0"}, true, NotForbidden},
		{sysctls{maximum: "1000", clone: "1", apparmor: "0"}, false, NotForbidden},
		{sysctls{maximum: "1000", clone: "1", apparmor: "1"}, false, Restricted},
		{sysctls{maximum: "1000", apparmor: "1"}, true, NotForbidden},
	} {
		if got := tt.s.userNamespaces(tt.root); got != tt.want {
			t.Errorf("%+v, root %v: %q, want %q", tt.s, tt.root, got, tt.want)
		}
	}
}

func TestLookAtHost(t *testing.T) {
	h := LookAtHost()
	if runtime.GOOS == "linux" && (h.Kernel == "" || h.Machine == "" || h.UserNamespaces == "") || h.LandlockABI < -1 {
		t.Errorf("%+v", h)
	}
}
