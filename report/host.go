package report

import (
	"strconv"

	"github.com/selfcage/selfcage/internal/jsonw"
)

// Host is what the host is, as far as it is read without starting anything. An empty string, and an ABI below 0, is not
// known.
type Host struct {
	Kernel         string // release, "6.1.0-18-amd64"
	Machine        string // "x86_64"
	Container      string // that this process runs in, "docker"
	LandlockABI    int    // 0 where the kernel has none
	UserNamespaces UserNamespaces
	Selfcage       string // version of this program, where it knows
}

// UserNamespaces says whether a setting of the host keeps this process from making user namespaces. That none does is
// no promise: a security module or a filter may.
type UserNamespaces string

// What settings say of user namespaces.
const (
	NotForbidden UserNamespaces = "not forbidden"
	Restricted   UserNamespaces = "restricted" // by AppArmor, to programs with a profile
	Forbidden    UserNamespaces = "forbidden"
)

// sysctls are settings under /proc/sys; "" is one that the kernel does not have.
type sysctls struct {
	maximum  string // user.max_user_namespaces
	clone    string // kernel.unprivileged_userns_clone, Debian's own
	apparmor string // kernel.apparmor_restrict_unprivileged_userns
}

// userNamespaces judges the settings for a process of root, or of an ordinary user.
func (s sysctls) userNamespaces(root bool) UserNamespaces {
	if s.maximum == "" {
		return ""
	}
	switch n, err := strconv.ParseUint(s.maximum, 10, 64); {
	case err != nil:
		return ""
	case n == 0, s.clone == "0" && !root:
		return Forbidden
	case s.apparmor != "" && s.apparmor != "0" && !root:
		return Restricted
	}
	return NotForbidden
}

func (h Host) write(w *jsonw.Writer) {
	w.Open('{')
	w.Pair("kernel", h.Kernel)
	w.Pair("machine", h.Machine)
	w.Pair("container", h.Container)
	if h.LandlockABI >= 0 {
		w.Key("landlock_abi")
		w.Int(int64(h.LandlockABI))
	}
	w.Pair("user_namespaces", string(h.UserNamespaces))
	w.Pair("selfcage", h.Selfcage)
	w.Close('}')
}
