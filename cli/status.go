package cli

import (
	"io"
	"os"
	"runtime/debug"

	"github.com/selfcage/selfcage/internal/launch"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/report"
)

type statusCmd struct {
	Format string `help:"text or json." default:"text" enum:"text,json"`
}

func (c *statusCmd) Run(stdout io.Writer, status *int) error {
	if !launch.Inside() {
		*status = 1
		if c.Format == "json" {
			_, err := io.WriteString(stdout, "{\"inside\":false}\n")
			return err
		}
		_, err := io.WriteString(stdout, "not in a cage\n")
		return err
	}
	r, err := statusOf(os.ReadFile)
	if err != nil {
		return err
	}
	if c.Format == "json" {
		_, err = stdout.Write(r.JSON())
	} else {
		_, err = io.WriteString(stdout, r.Text())
	}
	return err
}

// statusOf compares the plan of the cage around this process with what is observed.
func statusOf(read func(string) ([]byte, error)) (*report.Report, error) {
	data, err := read(plan.File)
	if err != nil {
		return nil, &refusal.Error{What: "cannot read the plan of the cage", Object: plan.File, Cause: err.Error(), Err: err}
	}
	pl, err := parsePlan(data)
	if err != nil {
		return nil, &refusal.Error{What: "cannot read the plan of the cage", Object: plan.File, Cause: err.Error(), Err: err}
	}
	r := report.Inside(pl, data)
	r.Host = host()
	return r, nil
}

// host is what is known of the host, and of this program.
func host() report.Host {
	h := report.LookAtHost()
	h.Selfcage = version()
	return h
}

// version is that of the module, "" where it was built without one.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Version
}
