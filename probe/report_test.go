package probe

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"io/fs"

	"github.com/selfcage/selfcage/internal/hostfs"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
)

func report(b *fakeBwrap, h host) Report {
	return Report{withModes(examine(b.run, "/usr/bin/bwrap", h))}
}

func states(r Report) string {
	var s []string
	for _, row := range r.Rows {
		if row.State != OK && row.State != NotYet {
			s = append(s, row.ID+"="+string(row.State))
		}
	}
	return strings.Join(s, " ")
}

func TestExamine(t *testing.T) {
	for _, c := range []struct {
		name   string
		bwrap  fakeBwrap
		host   host
		states string
		can    bool
	}{
		{"healthy", fakeBwrap{}, host{}, "", true},
		{"case 2: no fresh /proc", fakeBwrap{refuse: with("--proc")}, host{}, "proc=refused mode.bwrap=refused mode.auto=warning mode.enforced=refused", false},
		{"no network namespace: the usual run shares it", fakeBwrap{refuse: with("--unshare-net")}, host{}, "ns.net=refused", true},
		{"no cgroup namespace, host's tree visible", fakeBwrap{refuse: with("--unshare-cgroup")}, host{sharedCgroups: true}, "ns.cgroup=refused", true},
		{"no cgroup namespace, host's tree not visible", fakeBwrap{refuse: with("--unshare-cgroup")}, host{}, "ns.cgroup=refused mode.bwrap=refused mode.auto=warning mode.enforced=refused", false},
		{"no pid namespace", fakeBwrap{refuse: with("--unshare-pid")}, host{}, "ns.pid=refused proc=unknown mode.bwrap=refused mode.auto=warning mode.enforced=refused", false},
		{"no seccomp", fakeBwrap{refuse: with("--seccomp")}, host{}, "seccomp=refused mode.bwrap=refused mode.auto=warning mode.enforced=refused", false},
		{"case 1: no user namespace", fakeBwrap{refuse: with("--unshare-user")}, host{},
			"ns.user=refused ns.pid=unknown ns.ipc=unknown ns.uts=unknown ns.cgroup=unknown ns.net=unknown proc=unknown dev=unknown seccomp=unknown mode.bwrap=refused mode.auto=warning mode.enforced=refused", false},
		{"case 4: too old", fakeBwrap{help: []string{"--bind"}}, host{},
			"options=refused ns.user=unknown ns.pid=unknown ns.ipc=unknown ns.uts=unknown ns.cgroup=unknown ns.net=unknown proc=unknown dev=unknown seccomp=unknown mode.bwrap=refused mode.auto=warning mode.enforced=refused", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := report(&c.bwrap, c.host)
			if got := states(r); got != c.states {
				t.Errorf("got  %s\nwant %s", got, c.states)
			}
			if r.CanRun(policy.Bwrap) != c.can {
				t.Errorf("CanRun(bwrap) is %v", !c.can)
			}
			for _, m := range policy.Modes() {
				m := policy.Mode(m)
				can := m != policy.Landlock // without an engine in the others, and auto with less
				if m == policy.Bwrap || m == policy.Enforced {
					can = c.can
				}
				if r.CanRun(m) != can {
					t.Errorf("CanRun(%s) is %v", m, r.CanRun(m))
				}
			}
			if r.CanRun("") || r.CanRun("bogus") {
				t.Error("a mode that is none can run")
			}
		})
	}
}

func TestText(t *testing.T) {
	got := report(&fakeBwrap{refuse: with("--proc")}, masked("docker")).Text()
	const want = `ok                   bubblewrap            /usr/bin/bwrap, version 0.8.0
ok                   bubblewrap's options
ok                   user namespace
ok                   pid namespace
ok                   ipc namespace
ok                   uts namespace
ok                   cgroup namespace
ok                   network namespace
refused              fresh /proc           refused (bwrap: refused): the cause is not known; this process runs in a container (docker)
                     hint: look for a denial in the kernel's log (dmesg, journalctl -k, ausearch -m avc) at this moment
ok                   fresh /dev
ok                   seccomp filter
ok                   mode off              no cage
refused              mode bwrap            cannot run: fresh /proc
not-in-this-version  mode landlock
warning              mode auto             no cage, only the environment would be cleaned: fresh /proc
refused              mode enforced         cannot run: fresh /proc
ok                   mode scrubbed_only    no cage, only the environment is cleaned
ok                   mode disabled         no cage, and the report says so
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What a plan needs of the host decides whether mode auto may do with less; what is not known is no reason.
func TestCanHold(t *testing.T) {
	for _, c := range []struct {
		refuse string
		ns     plan.Namespaces
		want   bool
	}{
		{"nothing", plan.Namespaces{ShareNet: true, ShareCgroup: true}, true},
		{"--unshare-user", plan.Namespaces{ShareNet: true, ShareCgroup: true}, false},
		{"--proc", plan.Namespaces{ShareNet: true, ShareCgroup: true}, false},
		{"--unshare-net", plan.Namespaces{ShareNet: true, ShareCgroup: true}, true},
		{"--unshare-net", plan.Namespaces{ShareCgroup: true}, false},
		{"--unshare-cgroup", plan.Namespaces{ShareNet: true, ShareCgroup: true}, true},
		{"--unshare-cgroup", plan.Namespaces{ShareNet: true}, false},
	} {
		r := report(&fakeBwrap{refuse: with(c.refuse)}, host{sharedCgroups: true})
		if got := r.CanHold(&plan.Plan{Namespaces: c.ns}); got != c.want {
			t.Errorf("%s refused, %+v: %v", c.refuse, c.ns, got)
		}
	}
	for _, line := range []string{"bwrap: Creating new namespace failed: Resource temporarily unavailable", "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
		"bwrap: Can't mount proc: Cannot allocate memory", "fork/exec /usr/bin/bwrap: resource temporarily unavailable"} {
		o := observations{finding: finding{step: stepUser, line: line}, host: host{max: map[string]string{"user": "100", "pid": "100"}}}
		if r := (Report{Rows: []Row{o.row(stepUser, "ns.user")}}); !r.CanHold(&plan.Plan{}) || r.Rows[0].State != Refused {
			t.Errorf("%s: %+v", line, r.Rows)
		}
	}
	for _, o := range []observations{
		{finding: finding{step: stepUser, line: "bwrap: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)"}, host: host{max: map[string]string{"user": "0"}}},
		{finding: finding{step: stepUser, line: "bwrap: setting up uid map: Permission denied"}},
		{finding: finding{step: stepUser, signal: sigsys}},
	} {
		if (Report{Rows: []Row{o.row(stepUser, "ns.user")}}).CanHold(&plan.Plan{}) {
			t.Errorf("%+v", o.finding)
		}
	}
	if !(Report{Rows: []Row{{ID: "proc", State: Unknown, Required: true}}}).CanHold(&plan.Plan{}) {
		t.Error("what is not known counts as refused")
	}
}

// Programs read these names.
func TestJSON(t *testing.T) {
	b := Report{Rows: []Row{{ID: "proc", Name: "fresh /proc", State: Refused, Required: true, Detail: "d", Hint: "h"}, {ID: "x", Name: "y", State: OK}}}.JSON()
	var v []map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	first, second := v[0], v[1]
	for k, want := range map[string]any{"id": "proc", "name": "fresh /proc", "state": "refused", "required": true, "detail": "d", "hint": "h"} {
		if first[k] != want {
			t.Errorf("%s is %v", k, first[k])
		}
	}
	if _, ok := second["hint"]; ok || len(second) != 4 {
		t.Errorf("second row: %v", second)
	}
}

func TestResolvRow(t *testing.T) {
	link := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte(text)}
	}
	for _, c := range []struct {
		name   string
		files  fstest.MapFS
		state  State
		detail string
	}{
		{"a file", fstest.MapFS{"etc/resolv.conf": {}}, OK, ""},
		{"a link", fstest.MapFS{"etc/resolv.conf": link("../run/systemd/resolve/stub-resolv.conf"), "run/systemd/resolve/stub-resolv.conf": {}}, OK, "/run/systemd/resolve/stub-resolv.conf"},
		{"case 10: a link that leads nowhere", fstest.MapFS{"etc/resolv.conf": link("../run/systemd/resolve/stub-resolv.conf")}, Warning, "leads nowhere"},
		{"missing", fstest.MapFS{}, Warning, "not there"},
	} {
		row := resolvRow(hostfs.New(c.files))
		if row.State != c.state || !strings.Contains(row.Detail, c.detail) || row.Required {
			t.Errorf("%s: %+v", c.name, row)
		}
	}
}
