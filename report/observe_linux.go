package report

import (
	"os"

	"github.com/selfcage/selfcage/plan"
)

// observe reads what /proc says of a process, and compares its namespaces with those outside.
func observe(pid string, outside []plan.Namespace) (o Observed) {
	dir := "/proc/" + pid
	if data, err := os.ReadFile(dir + "/status"); err == nil {
		o.Status = ParseStatus(string(data))
	}
	if data, err := os.ReadFile(dir + "/mountinfo"); err == nil {
		o.Mounts = ParseMountInfo(string(data))
	}
	o.Namespaces = make(map[string]string)
	for _, n := range plan.NamespaceFiles {
		its, err := os.Readlink(dir + "/ns/" + n.Word)
		for _, out := range outside {
			switch {
			case err != nil || out.Name != n.Name:
			case its == out.Word:
				o.Namespaces[n.Name] = "shared"
			default:
				o.Namespaces[n.Name] = "own"
			}
		}
	}
	return o
}
