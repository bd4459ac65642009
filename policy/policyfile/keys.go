package policyfile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

// decoder turns the tree of one document into a policy.File.
type decoder struct {
	*source
	tokens  map[string]string
	file    policy.File
	extends []*node // strings, as they are in the document
	faults  Faults
}

// fault takes note of an error, and the reader goes on with what comes next: who has made a mistake wants to know of all.
func (d *decoder) fault(err error) {
	if err != nil && len(d.faults) < maxFaults {
		d.faults = append(d.faults, err)
	}
}

// key is one key of a policy. Its reader puts a value into f.
type key struct {
	name    string
	also    string // what people write instead, with a space between
	narrow  bool   // a delta may say it too
	read    func(d *decoder, f *policy.File, p pair) error
	value   string // what its value is, for the documentation
	meaning string
	example string // in TOML
}

// keys is the table of all keys, in the order of the documentation.
func keys() []key {
	return []key{
		{"mode", "", false, (*decoder).mode,
			"string",
			"how to confine: " + strings.Join(policy.Modes(), ", "), `mode = "enforced"`},
		{"read_paths", "read readable", true, paths(func(f *policy.File) *[]policy.Entry { return &f.Settings.Readable }),
			"list of paths",
			"files and directories that the run may read", `read_paths = ["{model_dir}", "/opt/models"]`},
		{"write_paths", "write writable", true, paths(func(f *policy.File) *[]policy.Entry { return &f.Settings.Writable }),
			"list of paths",
			"files and directories that the run may read and write", `write_paths = ["{scratch_dir}"]`},
		{"devices", "device", true, paths(func(f *policy.File) *[]policy.Entry { return &f.Settings.Device }),
			"list of paths",
			"device nodes, or directories of them (not in this version unless empty)", `devices = ["/dev/kfd", "/dev/dri"]`},
		{"gpu", "gpus", true, words(func(f *policy.File) *[]policy.Entry { return &f.Settings.GPU }, "all"),
			`"all" or list of strings`,
			"GPUs: all, or nodes, PCI addresses, CDI names (not in this version unless empty)", `gpu = "all"`},
		{"npu", "npus", true, words(func(f *policy.File) *[]policy.Entry { return &f.Settings.NPU }, "all"),
			`"all" or list of strings`,
			"NPUs, as gpu (not in this version unless empty)", `npu = ["/dev/accel/accel0"]`},
		{"network", "net egress hosts host", true, (*decoder).network,
			"object of egress (true or false) and hosts (list of host patterns)",
			"with egress only the hosts named, of which there must be one or more (egress is not in this version); " +
				"without, a loopback of its own and nothing else",
			`network = { egress = true, hosts = ["huggingface.co"] }`},
		{"env_allowlist", "env environment", true, (*decoder).env,
			"list of names",
			"variables of the caller that the run gets although scrubbing would drop them; a secret is an error",
			`env_allowlist = ["HTTPS_PROXY", "SSL_CERT_FILE"]`},
		{"cache", "caches", true, words(func(f *policy.File) *[]policy.Entry { return &f.Settings.Cache }, ""),
			"list of names",
			"tools whose own caches the run may read and write: those of `--cache`", `cache = ["go", "pip"]`},
		{"tmp", "tmp_size", false, (*decoder).tmp,
			"size",
			"size of the private /tmp", `tmp = "2G"`},
		{"hide", "hidden deny", true, paths(func(f *policy.File) *[]policy.Entry { return &f.Settings.Hide }),
			"list of paths",
			"what stays out of sight, whatever else is granted", `hide = ["{cwd}/private"]`},
		{"protect", "protected", true, paths(func(f *policy.File) *[]policy.Entry { return &f.Settings.Protect }),
			"list of paths",
			"what stays read-only inside a directory that is writable", `protect = ["{cwd}/.github"]`},
		{"limits", "limit memory pids cpu", false, (*decoder).limits,
			"object of memory (size), pids (integer) and cpu (number of processors)",
			"what the run may use (not in this version)", `limits = { memory = "8G", pids = 512, cpu = 2 }`},
		{"report", "", false, (*decoder).report,
			"path, or `-`",
			"where the report goes, - for standard error", `report = "{cwd}/report.json"`},
		{"note", "notes", false, (*decoder).note,
			"string",
			"free text for the report; " + policy.ContainerNote + " says that a container runtime isolates the run already",
			`note = "reviewed in May"`},
		{"narrow", "", false, (*decoder).narrow,
			"object of the keys marked narrow",
			"a delta: takes away from what everything else grants", `narrow = { write_paths = [] }`},
		{"extends", "extend include", false, (*decoder).extend,
			"file name, or list of them",
			"policies whose grants this one takes over, relative to its own directory", `extends = ["base.toml"]`},
	}
}

// document reads the root: the keys themselves, or one object "sandbox" that holds them.
func (d *decoder) document(root *node) error {
	const what = "a policy"
	if err := d.want(root, what, object); err != nil {
		return err
	}
	box := root.get("sandbox")
	if box == nil {
		return d.object(&d.file, root, false)
	}
	for _, p := range root.pairs {
		if p.key != box.key {
			d.fault(d.fail(p.at, "the key "+quote(p.key)+` stands beside "sandbox"`, `all keys of a policy stand in "sandbox", or none`))
		}
	}
	if err := d.want(box.value, `"sandbox"`, object); err != nil {
		return err
	}
	return d.object(&d.file, box.value, false)
}

// object reads the keys of n into f; narrow says that n is a delta.
func (d *decoder) object(f *policy.File, n *node, narrow bool) error {
	var names []string
	table := make(map[string]key)
	for _, k := range keys() {
		if !narrow || k.narrow {
			names = append(names, k.name)
		}
		table[k.name] = k
	}
	for _, p := range n.pairs {
		k, ok := table[p.key]
		switch {
		case len(d.faults) == maxFaults:
		case !ok:
			d.fault(d.unknownKey(p, names, keys()))
		case narrow && !k.narrow:
			d.fault(d.fail(p.at, quote(p.key)+" cannot stand in narrow", "accepted are "+strings.Join(names, ", ")))
		default:
			f.Said = append(f.Said, policy.Entry{Value: k.name, By: d.by(p.at)})
			d.fault(k.read(d, f, p))
		}
	}
	// Of entries that are equal the first stays.
	f.Settings = policy.Merge(f.Settings)
	return nil
}

// members reads the keys of an object inside a policy.
func (d *decoder) members(p pair, names []string, each func(q pair) error) error {
	if err := d.want(p.value, quote(p.key), object); err != nil {
		return err
	}
	for _, q := range p.value.pairs {
		switch {
		case len(d.faults) == maxFaults:
		case !slices.Contains(names, q.key):
			d.fault(d.unknownKey(q, names, nil))
		default:
			d.fault(each(q))
		}
	}
	return nil
}

// unknownKey knows the names that are accepted where p stands, and keys with other spellings.
func (d *decoder) unknownKey(p pair, names []string, known []key) error {
	near := policy.Nearest(p.key, names)
	for _, k := range known {
		for also := range strings.FieldsSeq(k.also) {
			if near == "" && also == strings.ToLower(p.key) && slices.Contains(names, k.name) {
				near = k.name
			}
		}
	}
	hint := "accepted are " + strings.Join(names, ", ")
	switch {
	case near != "":
		hint = "did you mean " + near + "?"
	case strings.Contains(strings.ToLower(p.key), "secret"):
		hint = "a secret is let through for one run only, with --secret NAME"
	}
	return d.fail(p.at, "unknown key "+quote(p.key), hint)
}

// want is an error when n is of none of kinds; what is the thing that has them.
func (d *decoder) want(n *node, what string, kinds ...kind) error {
	var accepted []string
	for _, k := range kinds {
		if n.kind == k || k == float && n.kind == integer {
			return nil
		}
		accepted = append(accepted, string(k))
	}
	return d.fail(n.at, what+" is "+strings.Join(accepted, " or ")+", not "+string(n.kind), "")
}

// text reads a string that says something.
func (d *decoder) text(n *node, what string) (string, error) {
	if err := d.want(n, what, text); err != nil {
		return "", err
	}
	switch {
	case strings.TrimSpace(n.text) == "":
		return "", d.fail(n.at, what+" is empty", "leave it out")
	case strings.IndexByte(n.text, 0) >= 0:
		return "", d.fail(n.at, what+" contains a NUL byte", "")
	case len(n.text) > maxString:
		return "", d.fail(n.at, what+" is longer than 4096 bytes", "")
	}
	return n.text, nil
}

// list reads a list of strings; with only, that one word may stand alone instead of a list.
func (d *decoder) list(p pair, only string, each func(n *node, s string) error) error {
	what := quote(p.key)
	items := p.value.items
	if only != "" && p.value.kind == text {
		if p.value.text != only {
			return d.fail(p.value.at, what+" is "+quote(only)+" or a list of strings", "")
		}
		items = []*node{p.value}
	} else if err := d.want(p.value, what, list); err != nil {
		return err
	}
	if len(items) > maxElements {
		return d.fail(items[maxElements].at, what+" has more than "+strconv.Itoa(maxElements)+" elements, it has "+strconv.Itoa(len(items)),
			"name the directories that hold them")
	}
	for _, n := range items {
		s, err := d.text(n, "an element of "+what)
		if err == nil {
			err = each(n, s)
		}
		d.fault(err)
	}
	return nil
}

// paths reads a list of paths.
func paths(to func(*policy.File) *[]policy.Entry) func(*decoder, *policy.File, pair) error {
	return func(d *decoder, f *policy.File, p pair) error {
		return d.list(p, "", func(n *node, s string) error {
			path, err := d.path(n)
			*to(f) = append(*to(f), policy.Entry{Value: path, By: d.by(n.at)})
			if name, rest, ok := strings.Cut(strings.TrimPrefix(n.text, "{"), "}"); err == nil && ok && n.text[0] == '{' && rest != "" {
				// What lies in the place that a token names must not make another place of it by a link.
				f.Settings.Confined = append(f.Settings.Confined, policy.Confined{Path: path, Root: d.tokens[name]})
			}
			return err
		})
	}
}

// words reads a list of strings as they are.
func words(to func(*policy.File) *[]policy.Entry, only string) func(*decoder, *policy.File, pair) error {
	return func(d *decoder, f *policy.File, p pair) error {
		return d.list(p, only, func(n *node, s string) error {
			*to(f) = append(*to(f), policy.Entry{Value: s, By: d.by(n.at)})
			return nil
		})
	}
}

func (d *decoder) mode(f *policy.File, p pair) error {
	s, err := d.text(p.value, "the mode")
	if err != nil {
		return err
	}
	m, ok := policy.ParseMode(s)
	if !ok {
		hint := ""
		// Never towards less than what was asked for.
		strong := []string{string(policy.Bwrap), string(policy.Landlock), string(policy.Auto), string(policy.Enforced), string(policy.ScrubbedOnly)}
		if near := policy.Nearest(s, strong); near != "" {
			hint = "did you mean " + near + "?"
		}
		return d.fail(p.value.at, "unknown mode "+quote(s)+"; accepted are "+strings.Join(policy.Modes(), ", "), hint)
	}
	f.Settings.Mode = policy.Entry{Value: string(m), By: d.by(p.value.at)}
	return nil
}

// env reads names of variables. It never quotes what follows a '=', which may be a secret.
func (d *decoder) env(f *policy.File, p pair) error {
	return d.list(p, "", func(n *node, s string) error {
		name, _, hasValue := strings.Cut(s, "=")
		switch {
		case hasValue:
			return d.fail(n.at, "env_allowlist has names of variables, not NAME=VALUE",
				"write "+quote(name)+" and set it in the environment")
		case strings.ContainsAny(s, " \t\r\n*"):
			return d.fail(n.at, quote(s)+" is no name of a variable", "")
		}
		f.Settings.Env = append(f.Settings.Env, policy.Entry{Value: s, By: d.by(n.at)})
		return nil
	})
}

const networkHint = "write { egress = true, hosts = [...] }, in JSON {\"egress\": true, \"hosts\": [...]}; " +
	"the host's whole network is not a policy's to grant"

// network reads the object that says whether the run may reach hosts, and which (seeds R23, R24, R40).
func (d *decoder) network(f *policy.File, p pair) error {
	if p.value.kind != object {
		hint := networkHint
		if p.value.kind == text && strings.EqualFold(strings.TrimSpace(p.value.text), "none") {
			hint = "leave it out: none is what an absent network means, and so does { egress = false }"
		}
		return d.fail(p.value.at, "network is an object, not "+string(p.value.kind), hint)
	}
	open, at, before := false, p.at, len(d.faults)
	err := d.members(p, []string{"egress", "hosts"}, func(q pair) error {
		if q.key == "hosts" {
			return d.list(q, "", func(n *node, s string) error { return d.host(f, n, s) })
		}
		open, at = q.value.text == "true", q.value.at
		return d.want(q.value, `"egress"`, boolean)
	})
	word := "none"
	switch hosts := p.value.get("hosts"); {
	case err != nil || len(d.faults) > before: // what else is missing follows from that
		return err
	case open && len(f.Settings.Hosts) == 0:
		return d.fail(at, "egress is true and no host is named", networkHint)
	case !open && len(f.Settings.Hosts) > 0:
		return d.fail(hosts.at, "hosts are named and egress is not true", networkHint)
	case open:
		word = "egress"
	}
	f.Settings.Network = policy.Entry{Value: word, By: d.by(at)}
	return nil
}

// host never quotes what may be a password in a URL.
func (d *decoder) host(f *policy.File, n *node, s string) error {
	h, err := policy.ParseHost(s)
	if r, ok := err.(*refusal.Error); ok {
		what := r.Object
		if what == "" {
			what = `an element of "hosts"`
		}
		return d.fail(n.at, what+" "+r.Cause, r.Hint)
	}
	f.Settings.Hosts = append(f.Settings.Hosts, policy.Entry{Value: h.String(), By: d.by(n.at)})
	return err
}

// size reads a number of bytes, an integer or a string such as "2G".
func (d *decoder) size(p pair) (policy.Entry, error) {
	what := quote(p.key)
	if err := d.want(p.value, what, text, integer); err != nil {
		return policy.Entry{}, err
	}
	if _, ok := policy.ParseSize(p.value.text); !ok {
		return policy.Entry{}, d.fail(p.value.at, what+" is no size: "+quote(p.value.text), `write a number of bytes above 0, or "512M", "2G"`)
	}
	return policy.Entry{Value: p.value.text, By: d.by(p.value.at)}, nil
}

func (d *decoder) tmp(f *policy.File, p pair) (err error) {
	f.Settings.TmpSize, err = d.size(p)
	return err
}

func (d *decoder) limits(f *policy.File, p pair) error {
	return d.members(p, []string{"memory", "pids", "cpu"}, func(q pair) (err error) {
		e := policy.Entry{By: d.by(q.value.at)}
		switch q.key {
		case "memory":
			e, err = d.size(q)
		case "pids":
			e.Value, err = d.count(q)
		case "cpu":
			e.Value, err = d.cpus(q)
		}
		e.Value = q.key + "=" + e.Value
		f.Settings.Limit = append(f.Settings.Limit, e)
		return err
	})
}

func (d *decoder) count(p pair) (string, error) {
	if err := d.want(p.value, quote(p.key), integer); err != nil {
		return "", err
	}
	n, err := strconv.ParseInt(p.value.text, 10, 64)
	if err != nil || n <= 0 {
		return "", d.fail(p.value.at, quote(p.key)+" is no count: "+quote(p.value.text), "write a number above 0 in decimal digits")
	}
	return strconv.FormatInt(n, 10), nil
}

// cpus reads how many processors' time the run may use: digits with at most one point, so that both languages agree.
func (d *decoder) cpus(p pair) (string, error) {
	if err := d.want(p.value, quote(p.key), float); err != nil {
		return "", err
	}
	s := p.value.text
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n <= 0 || strings.Trim(s, "0123456789.") != "" || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") {
		return "", d.fail(p.value.at, quote(p.key)+" is no number of processors: "+quote(s), "write a number above 0, such as 2 or 1.5")
	}
	return strconv.FormatFloat(n, 'f', -1, 64), nil
}

func (d *decoder) report(f *policy.File, p pair) error {
	s, err := d.text(p.value, `"report"`)
	if err == nil && s != "-" {
		s, err = d.path(p.value)
	}
	f.Settings.Report = policy.Entry{Value: s, By: d.by(p.value.at)}
	return err
}

func (d *decoder) note(f *policy.File, p pair) error {
	s, err := d.text(p.value, `"note"`)
	f.Settings.Note = policy.Entry{Value: s, By: d.by(p.value.at)}
	return err
}

func (d *decoder) narrow(f *policy.File, p pair) error {
	if err := d.want(p.value, `"narrow"`, object); err != nil {
		return err
	}
	var delta policy.File
	err := d.object(&delta, p.value, true)
	f.Narrow = append(f.Narrow, delta)
	return err
}

// extend only collects the names: Load reads the files.
func (d *decoder) extend(_ *policy.File, p pair) error {
	add := func(n *node, s string) error {
		if strings.HasPrefix(s, "~") {
			return d.tilde(n)
		}
		d.extends = append(d.extends, n)
		return nil
	}
	if p.value.kind == text {
		s, err := d.text(p.value, `"extends"`)
		if err != nil {
			return err
		}
		return add(p.value, s)
	}
	return d.list(p, "", add)
}

// unique leaves the first of entries with the same value.
func unique(es []policy.Entry) []policy.Entry {
	return policy.Merge(policy.Settings{Readable: es}).Readable
}
