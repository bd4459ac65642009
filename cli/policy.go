package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/approval"
	"github.com/selfcage/selfcage/cli/run"
	"github.com/selfcage/selfcage/internal/jsontext"
	"github.com/selfcage/selfcage/internal/launch"
	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/internal/start"
	"github.com/selfcage/selfcage/plan"
	"github.com/selfcage/selfcage/policy"
	"github.com/selfcage/selfcage/policy/policyfile"
)

const policyUsage = `Usage: selfcage policy check [flags] FILE...
       selfcage policy show [flags] FILE [-- CMD]
       selfcage policy diff [flags] A B
       selfcage policy approve [flags] FILE... [-- CMD]
       selfcage policy approve --revoke FILE...

Look at policy files. Nothing is run. The commands work in every mode, and where nothing can be confined.

check    says whether each file is valid on this host: exit status 0, or 1 with all that is wrong.
show     prints what a run with --policy FILE would get: every grant, where it leads, and who said it.
diff     prints what B gives more or less than A: exit status 0 if nothing, 1 if something. Each is a policy file, or
         the report of a run. Of two reports with manifests, it says also in what else the two runs differ.
approve  remembers what such a run would get, so that run --require-approved refuses whatever is wider later.

selfcage policy COMMAND --help lists the flags of each.
`

// policyHelp is the help of each command, before the flags that it shares with run.
var policyHelp = map[string]string{
	"check": `Usage: selfcage policy check [flags] FILE...

Say whether each policy file is valid on this host. Nothing is run. The exit status is 1 where one of them is not, with all
faults of all files: those of the text by line and column; where there are none, what is wrong with the paths and names that
it grants. It is 0 where all are valid, also one that asks for what this version cannot do yet: it prints which, and a run
refuses it. Warnings do not change the status. Variables do not count, but for SANDBOX_DEFINE.

Flags:
  --format text|json  how to print it

and those of run, which are judged together with each file:
`,
	"show": `Usage: selfcage policy show [flags] FILE [-- CMD]

Print what a run with --policy FILE, the same flags and the variables that are set would get: every grant, where it leads, and
who said it. {exe_dir} is the directory of CMD. The exit status is 125 where something is wrong, which is printed behind the rest.

Flags:
  --format text|json  how to print it

and those of run:
`,
	"diff": `Usage: selfcage policy diff [flags] A B

Print what B gives more or less than A. Each is a policy file, or the report of a run. Of two reports with manifests, print also
in what else the two runs differ. The exit status is 0 if there is nothing, 1 if something, 125 if they cannot be compared.
Variables do not count, but for SANDBOX_DEFINE.

Flags:
  --format text|json  how to print it

and those of run, which count for both policy files:
`,
	"approve": `Usage: selfcage policy approve [flags] FILE... [-- CMD]
       selfcage policy approve --revoke FILE...

Remember what a run with --policy FILE, the same flags and the variables that are set would get, so that run --require-approved
refuses whatever is wider later. Give the flags and the command of the run: they add grants, and {exe_dir} is the directory of
CMD. There is one approval of each file, and another one replaces it. It is stored in $XDG_STATE_HOME/selfcage/approved, or
else in ~/.local/state/selfcage/approved.

Flags:
  --revoke  forget what was approved for each FILE, which need not be there any more

and those of run:
`,
}

// policyFlags are the flags of run, but for the one that the policy file itself stands for.
func policyFlags() string {
	var b strings.Builder
	for line := range strings.Lines(policy.Help()) {
		if !strings.HasPrefix(line, "  --policy ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// policyCommand runs one of the policy commands. Its error is 125.
func policyCommand(args []string, stdout, stderr io.Writer) (status int, err error) {
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	commands := map[string]func(looker) (int, error){
		"check": looker.check, "show": looker.show, "diff": looker.diff, "approve": looker.approve,
	}
	if name == "" || name == "-h" || name == "--help" {
		_, err := io.WriteString(stdout, policyUsage)
		return 0, err
	}
	f := commands[name]
	if f == nil {
		near := policy.Nearest(name, []string{"check", "show", "diff", "approve"})
		hint := "selfcage policy --help lists the commands"
		if near != "" {
			hint = "did you mean " + near + "?"
		}
		return 0, &refusal.Error{What: "unknown policy command", Object: plan.Quote(name), Hint: hint}
	}
	l, help, err := parseLooker(args)
	if help {
		_, err := io.WriteString(stdout, policyHelp[name]+policyFlags())
		return 0, err
	}
	if err == nil && name != "approve" && l.revoke {
		err = &refusal.Error{What: "wrong flag", Object: "--revoke", Cause: "only approve takes it"}
	}
	if err != nil {
		return 0, err
	}
	if want := map[string]int{"show": 1, "diff": 2}[name]; len(l.files) == 0 || want > 0 && len(l.files) != want {
		return 0, &refusal.Error{What: "selfcage policy " + name + " takes " + map[int]string{0: "policy files", 1: "one policy file", 2: "two files"}[want],
			Cause: "there are " + strconv.Itoa(len(l.files)), Hint: "selfcage policy " + name + " --help shows how it is written"}
	}
	l.out, l.err, l.environ = stdout, stderr, os.Environ()
	return f(l)
}

// looker looks at policy files for a user.
type looker struct {
	program  start.Program
	files    []string
	format   string // "text", "json", "" where nobody said
	revoke   bool
	environ  []string
	out, err io.Writer
}

// parseLooker reads files and flags in any order, up to "--", behind which is the command that a run would execute.
func parseLooker(args []string) (l looker, help bool, err error) {
	var flags []string
	for len(args) > 0 && args[0] != "--" {
		word := args[0]
		if word == "-" || word == "" || word[0] != '-' {
			l.files, args = append(l.files, word), args[1:]
			continue
		}
		n := 1
		if word == "--revoke" {
			l.revoke, args = true, args[1:]
			continue
		}
		if name, value, has := strings.Cut(word, "="); name == "--format" {
			if !has && len(args) > 1 {
				n, value = 2, args[1]
			}
			if value != "text" && value != "json" {
				return l, false, &refusal.Error{What: "unknown format", Object: plan.Quote(value), Cause: "accepted are text, json"}
			}
			l.format, args = value, args[n:]
			continue
		} else if _, _, _, err := policy.FromFlags(args[:1]); err != nil && !has && len(args) > 1 {
			n = 2 // it needs a value; what is wrong with it is said below
		}
		flags, args = append(flags, args[:n]...), args[n:]
	}
	if len(args) > 0 {
		flags = append(flags, args...)
	}
	l.program, _, help, err = run.Parse(flags, 0)
	if e := l.program.Flags.Policy; err == nil && !help && e.Value != "" {
		err = &refusal.Error{What: "wrong flag", Object: "--policy", Cause: "the policy file is named by itself here", Hint: "leave --policy out"}
	}
	return l, help, err
}

// ofFile is the program whose run has the policy file, and the environment of that run. A mode that would let nobody read the
// file does not count. alone leaves out what variables add.
func (l looker) ofFile(file string, alone bool) (start.Program, []string) {
	p := l.program
	p.Flags.Policy = policy.Entry{Value: file, By: "selfcage policy"}
	if unread(p.Flags.Mode.Value) {
		p.Flags.Mode = policy.Entry{}
	}
	prefix := policy.Prefix(p.Name)
	var environ []string
	for _, kv := range l.environ {
		name, value, _ := strings.Cut(kv, "=")
		suffix, ours := strings.CutPrefix(name, prefix)
		mode, _ := policy.ParseMode(value)
		if ours && (alone && suffix != "DEFINE" || suffix == "MODE" && unread(string(mode)) || suffix == "POLICY") {
			continue
		}
		environ = append(environ, kv)
	}
	return p, environ
}

// unread says whether a mode means that policies are not read.
func unread(mode string) bool { return mode == string(policy.Off) || mode == string(policy.Disabled) }

// looked is what a policy file means on this host.
type looked struct {
	effective   policy.Effective
	rows        []plan.Resolved
	unsupported []error
}

// nowhere are the paths to hide or protect that are not there, which is most likely a mistake.
func (k looked) nowhere() (warnings []error) {
	for _, r := range k.rows {
		if (r.What == "hide" || r.What == "protect") && r.Real == "" && r.Note != "" {
			warnings = append(warnings, &refusal.Error{What: r.What, Object: r.By + " " + plan.Quote(r.Path), Cause: r.Note})
		}
	}
	return warnings
}

// look loads a policy file and judges it. The error is a refusal, or a plan.Refusals; what was found before it is returned.
func (l looker) look(file string, alone bool) (k looked, err error) {
	p, environ := l.ofFile(file, alone)
	if err := policy.Misspelt(policy.Prefix(p.Name), environ); err != nil {
		return k, err
	}
	if k.effective, err = p.Asked(environ); err != nil {
		return k, err
	}
	k.unsupported = unsupported(k.effective.Settings)
	facts, err := start.Facts(environ)
	if facts.Host == nil {
		return k, err
	}
	possible := k.effective
	possible.Device = nil
	for _, d := range k.effective.Device {
		// Those that this version cannot select need not be here; a path that is no device at all is wrong anywhere.
		if len(unsupported(policy.Settings{Device: []policy.Entry{d}})) == 0 || !strings.HasPrefix(d.Value, "/dev/") {
			possible.Device = append(possible.Device, d)
		}
	}
	req, err := p.Request(possible, environ)
	if err != nil {
		return k, err
	}
	k.rows, err = plan.Check(facts, req)
	return k, located(err, k.effective.Env)
}

// located adds who said the name of a variable to each refusal of one, which knows the name alone.
func located(err error, names []policy.Entry) error {
	var many plan.Refusals
	if !errors.As(err, &many) {
		return err
	}
	out := make(plan.Refusals, len(many))
	for i, err := range many {
		out[i] = err
		var r *refusal.Error
		for _, e := range names {
			if errors.As(err, &r) && (r.Object == e.Value || r.Object == plan.Quote(e.Value)) {
				with := *r
				with.Object = e.By + " " + r.Object
				out[i] = &with
			}
		}
	}
	return out
}

// unsupported is every error of Settings.Unsupported, not only the first.
func unsupported(s policy.Settings) (errs []error) {
	s.Each(func(name string, _ bool, entries []policy.Entry) {
		for _, e := range entries {
			var one policy.Settings
			if approval.Said(&one, name, e) == nil {
				if err := one.Unsupported(); err != nil {
					errs = append(errs, err)
				}
			}
		}
	})
	return errs
}

// each is the errors that err stands for.
func each(err error) []error {
	var many plan.Refusals
	var places policyfile.Faults
	switch {
	case err == nil:
		return nil
	case errors.As(err, &many):
		return many
	case errors.As(err, &places):
		return places
	}
	return []error{err}
}

// checked is the verdict on one file, as JSON has it.
type checked struct {
	File     jsontext.Text `json:"file"`
	Valid    bool          `json:"valid"`
	Errors   []fault       `json:"errors"`
	Warnings []fault       `json:"warnings"` // why this version refuses to run it
	Notes    []fault       `json:"notes"`    // what is valid and most likely not meant
}

// fault is a refusal in JSON.
type fault struct {
	What   string        `json:"what"`
	Object jsontext.Text `json:"object,omitempty"`
	Cause  jsontext.Text `json:"cause,omitempty"`
	Hint   jsontext.Text `json:"hint,omitempty"`
}

func faultOf(err error) fault {
	var r *refusal.Error
	if errors.As(err, &r) {
		return fault{r.What, jsontext.Text(r.Object), jsontext.Text(r.Cause), jsontext.Text(r.Hint)}
	}
	return fault{What: err.Error()}
}

func faults(errs []error) []fault {
	list := []fault{}
	for _, err := range errs {
		list = append(list, faultOf(err))
	}
	return list
}

func (l looker) check() (status int, err error) {
	all := []checked{}
	for _, file := range l.files {
		k, err := l.look(file, true)
		errs := each(err)
		if len(errs) > 0 {
			status = 1
		}
		if l.format == "json" {
			all = append(all, checked{jsontext.Text(file), len(errs) == 0, faults(errs), faults(k.unsupported), faults(k.nowhere())})
			continue
		}
		if _, err := io.WriteString(l.out, verdict(file, errs, k.unsupported, k.nowhere())); err != nil {
			return 0, err
		}
	}
	if l.format == "json" {
		return status, l.json(all)
	}
	return status, nil
}

// verdict is what check prints about one file.
func verdict(file string, errs, unsupported, notes []error) string {
	var b strings.Builder
	name := refusal.Printable(file)
	say := func(before string, errs []error) {
		for _, err := range errs {
			b.WriteString(name + before + refusal.Printable(err.Error()) + "\n")
			var r *refusal.Error
			if errors.As(err, &r) && r.Hint != "" {
				b.WriteString("  hint: " + refusal.Printable(r.Hint) + "\n")
			}
		}
	}
	but := ": valid, but this version refuses to run it: "
	if len(errs) > 0 {
		but = ": and this version refuses to run it: "
	} else if len(unsupported) == 0 {
		b.WriteString(name + ": ok\n")
	}
	say(": ", errs)
	say(but, unsupported)
	say(": warning: ", notes)
	return b.String()
}

// json prints one document.
func (l looker) json(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := l.out.Write(b.Bytes())
	return err
}

func (l looker) show() (int, error) {
	k, err := l.look(l.files[0], false)
	if len(k.rows) == 0 && err != nil && !k.effective.InForce {
		return 0, err
	}
	if l.format == "json" {
		if err := l.json(shownOf(k, err)); err != nil {
			return 0, err
		}
		return 0, l.all(err)
	}
	if _, err := io.WriteString(l.out, k.text()); err != nil {
		return 0, err
	}
	l.notes(k)
	return 0, l.all(err)
}

// notes says what is valid and cannot be run yet.
func (l looker) notes(k looked) {
	for _, w := range k.unsupported {
		fmt.Fprintf(l.err, "selfcage: note: this version refuses to run it: %s\n", refusal.Printable(w.Error()))
	}
}

// all prints all errors but the last, which the caller prints.
func (l looker) all(err error) error {
	errs := each(err)
	for len(errs) > 1 {
		fail(l.err, errs[0])
		errs = errs[1:]
	}
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

// text is what show prints: paths as they are on the host, everything else as it was said.
func (k looked) text() string {
	rows := [][4]string{}
	for _, e := range []struct {
		what string
		policy.Entry
	}{{"mode", k.effective.Mode}, {"network", k.effective.Network}} {
		rows = append(rows, [4]string{e.what, e.Value, "", "(" + e.By + ")"})
	}
	for _, r := range k.rows {
		last := "(" + r.By + ")"
		if r.Real != "" && r.Real != r.Path {
			last += " leads to " + plan.Quote(r.Real)
		}
		if r.Note != "" {
			last += " " + r.Note
		}
		rows = append(rows, [4]string{r.What, plan.Quote(r.Path), r.Access, last})
	}
	k.others(func(name string, e policy.Entry) {
		rows = append(rows, [4]string{name, plan.Quote(e.Value), "", "(" + e.By + ")"})
	})
	var b strings.Builder
	table4(&b, rows)
	for _, c := range k.effective.Narrowed {
		b.WriteString(refusal.Printable("taken away: "+c.String()) + "\n")
	}
	return b.String()
}

// others calls f for each setting that is neither a path on the host nor the mode or the network, nor where the rest is from.
func (k looked) others(f func(name string, e policy.Entry)) {
	k.effective.Each(func(name string, _ bool, entries []policy.Entry) {
		switch name {
		case "mode", "network", "readable", "writable", "cache", "hide", "protect", "policy", "define", "quiet":
			return
		}
		for _, e := range entries {
			if name != "device" || len(unsupported(policy.Settings{Device: []policy.Entry{e}})) > 0 {
				f(name, e)
			}
		}
	})
}

// table4 prints rows in columns.
func table4(b *strings.Builder, rows [][4]string) {
	var width [3]int
	for _, r := range rows {
		for i := range width {
			width[i] = max(width[i], len(r[i]))
		}
	}
	for _, r := range rows {
		line := ""
		for i, cell := range r {
			if i == 3 {
				line += cell
			} else if width[i] > 0 {
				line += cell + strings.Repeat(" ", width[i]-len(cell)+2)
			}
		}
		b.WriteString(refusal.Printable(line) + "\n")
	}
}

// shown is what show prints as JSON.
type shown struct {
	Files    []jsontext.Text   `json:"files"`
	Mode     said              `json:"mode"`
	Network  said              `json:"network"`
	Grants   []grant           `json:"grants"`
	Others   map[string][]said `json:"others"`
	Narrowed []changed         `json:"narrowed"`
	Errors   []fault           `json:"errors"`
	Warnings []fault           `json:"warnings"`
}

type said struct {
	Value jsontext.Text `json:"value"`
	By    jsontext.Text `json:"by"`
}

type grant struct {
	What   string        `json:"what"`
	Path   jsontext.Text `json:"path"`
	Real   jsontext.Text `json:"real,omitempty"` // without links, none where there is nothing
	Access string        `json:"access"`
	By     jsontext.Text `json:"by"`
	Note   jsontext.Text `json:"note,omitempty"`
}

func shownOf(k looked, err error) shown {
	s := shown{
		Files: []jsontext.Text{}, Mode: saidOf(k.effective.Mode), Network: saidOf(k.effective.Network), Grants: []grant{},
		Others: map[string][]said{}, Narrowed: changes(k.effective.Narrowed), Errors: faults(each(err)), Warnings: faults(k.unsupported),
	}
	for _, f := range k.effective.Files {
		s.Files = append(s.Files, jsontext.Text(f))
	}
	for _, r := range k.rows {
		s.Grants = append(s.Grants, grant{r.What, jsontext.Text(r.Path), jsontext.Text(r.Real), r.Access, jsontext.Text(r.By), jsontext.Text(r.Note)})
	}
	k.others(func(name string, e policy.Entry) { s.Others[name] = append(s.Others[name], saidOf(e)) })
	return s
}

func saidOf(e policy.Entry) said { return said{jsontext.Text(e.Value), jsontext.Text(e.By)} }

// approve stores nothing unless every file is valid.
func (l looker) approve() (int, error) {
	if l.format != "" {
		return 0, &refusal.Error{What: "wrong flag", Object: "--format", Cause: "approve prints text only"}
	}
	if l.revoke {
		return 0, l.forget()
	}
	var all []looked
	for _, file := range l.files {
		k, err := l.look(file, false)
		if err != nil {
			return 0, l.all(err)
		}
		all = append(all, k)
	}
	for i, file := range l.files {
		digest, err := approval.Store(file, all[i].effective.Settings)
		if err != nil {
			return 0, err
		}
		n := counted(len(all[i].rows), "path") + ", network " + all[i].effective.Network.Value + ", mode " + all[i].effective.Mode.Value
		if _, err := fmt.Fprintf(l.out, "%s: approved: %s, sha256:%s\n", refusal.Printable(file), n, digest); err != nil {
			return 0, err
		}
		l.notes(all[i])
	}
	if launch.Inside() {
		fmt.Fprintln(l.err, "selfcage: note: what is approved inside a cage is known there only, unless the state directory is granted")
	}
	return 0, nil
}

// forget takes back what was approved for each file.
func (l looker) forget() error {
	for _, file := range l.files {
		if err := approval.Revoke(file); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(l.out, "%s: not approved any more\n", refusal.Printable(file)); err != nil {
			return err
		}
	}
	return nil
}

// counted is "1 path", "2 paths".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
