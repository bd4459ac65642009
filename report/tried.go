package report

import (
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/plan"
)

// Tried is an attempt at what must fail, with what came of it. One that was neither refused nor worked shows nothing.
type Tried struct {
	plan.Attempt
	Refused bool
	How     string // the name of the error, or Worked
}

// Worked is the How of an attempt that was not refused.
const Worked = "it worked"

// result makes a Tried of what came of an attempt. Not every error is a refusal: a process that has no descriptor left
// can open nothing, and confinement has no part in that.
func result(a plan.Attempt, how string) Tried {
	return Tried{Attempt: a, Refused: refuses(a.Op, how), How: how}
}

func refuses(op, how string) bool {
	switch how {
	case "EACCES", "EPERM":
		return true
	case "ENOENT", "ENOTDIR":
		return op == "open" || op == "write"
	case "EROFS":
		return op == "write"
	case "ENETUNREACH", "EHOSTUNREACH", "ENETDOWN", "EAFNOSUPPORT":
		return op == "connect"
	}
	return false
}

// control is the promise that an attempt fails, with what is known of it.
func (t Tried) control() Control {
	c := Control{Name: t.Op + " " + plan.Quote(t.Object), Planned: "refused", Observed: "unknown", State: NotObserved}
	switch {
	case t.Refused:
		c.Observed, c.State = "refused ("+t.How+")", AsPlanned
	case t.How == Worked:
		c.Observed, c.State = Worked, Differs
	case t.How != "":
		c.Observed = "unknown (" + t.How + ")"
	}
	return c
}

// EncodeTried is the form in which what came of attempts travels from the inner stage: a line for each, in the order of
// the plan. The attempts themselves stay at home.
func EncodeTried(ts []Tried) []byte {
	var b []byte
	for _, t := range ts {
		b = append(append(b, t.How...), '\n')
	}
	return b
}

// DecodeTried reads what EncodeTried made of the attempts as. ok is false for anything else.
func DecodeTried(data []byte, as []plan.Attempt) (ts []Tried, ok bool) {
	rest := string(data)
	for _, a := range as {
		how, after, found := strings.Cut(rest, "\n")
		if !found || !knownHow(how) {
			return nil, false
		}
		ts = append(ts, result(a, how))
		rest = after
	}
	if rest != "" {
		return nil, false
	}
	return ts, true
}

// knownHow says whether a word can be the How of a Tried.
func knownHow(how string) bool {
	if how == Worked {
		return true
	}
	if len(how) < 2 || len(how) > 20 || how[0] != 'E' {
		return false
	}
	for _, c := range []byte(how) {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

type ipv4 struct {
	addr [4]byte
	port int
}

// parseIPv4 reads "192.0.2.1:53". Package net/netip would do, and computes when every host program starts.
func parseIPv4(s string) (to ipv4, ok bool) {
	host, port, _ := strings.Cut(s, ":")
	parts := strings.Split(host, ".")
	if len(parts) != len(to.addr) {
		return ipv4{}, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return ipv4{}, false
		}
		to.addr[i] = byte(n)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	to.port = int(n)
	return to, err == nil && n > 0
}
