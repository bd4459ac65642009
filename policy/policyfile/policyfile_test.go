package policyfile

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selfcage/selfcage/internal/refusal"
	"github.com/selfcage/selfcage/policy"
)

var update = flag.Bool("update", false, "write the golden files")

var tokens = map[string]string{
	"exe_dir": "/opt/engine", "model_dir": "/models/hub/snapshots/1", "scratch_dir": "/scratch", "hf_cache": "/home/u/.cache/huggingface",
	"cwd": "/work", "home": "/home/u", "draft_dir": "/models/draft", "root": "/", "unset": "", "wrong": "models",
}

var opts = Options{Tokens: tokens}

// dump writes everything that a File says, one value a line, with its line in the file.
func dump(f policy.File) string {
	var b strings.Builder
	add := func(name string, es ...policy.Entry) {
		for _, e := range es {
			if e != (policy.Entry{}) {
				fmt.Fprintf(&b, "%-9s %s (%s)\n", name, e.Value, e.By)
			}
		}
	}
	add("said", f.Said...)
	s := f.Settings
	add("mode", s.Mode)
	add("network", s.Network)
	add("host", s.Hosts...)
	add("read", s.Readable...)
	add("write", s.Writable...)
	add("device", s.Device...)
	add("gpu", s.GPU...)
	add("npu", s.NPU...)
	add("cache", s.Cache...)
	add("env", s.Env...)
	add("limit", s.Limit...)
	add("report", s.Report)
	add("never", s.Bwrap, s.Policy, s.Quiet)
	add("never", s.Secret...)
	add("hide", f.Settings.Hide...)
	add("protect", f.Settings.Protect...)
	add("tmp", f.Settings.TmpSize)
	add("note", f.Settings.Note)
	for _, n := range f.Narrow {
		b.WriteString("narrow\n\t" + strings.ReplaceAll(strings.TrimSuffix(dump(n), "\n"), "\n", "\n\t") + "\n")
	}
	return b.String()
}

func mustParse(t *testing.T, name, text string) policy.File {
	t.Helper()
	f, err := Parse(name, []byte(text), opts)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return f
}

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// Seeds R12, R22, R23, R35, R37, R39: the RFC's block and its worked examples load as they are written.
func TestRFC(t *testing.T) {
	files, _ := filepath.Glob("testdata/rfc/*.json")
	if len(files) != 5 {
		t.Fatalf("the examples are %q", files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			f, err := Load(file, opts)
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".json") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(dump(f)), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, string(want), dump(f))
			diff(t, []string{file}, f.Files)
		})
	}
}

// Seeds R37: what a built-in says in code is the same value as what the fourth example's file says.
func TestBuiltIn(t *testing.T) {
	f, err := Load("testdata/rfc/builtin.json", opts)
	if err != nil {
		t.Fatal(err)
	}
	built := policy.Settings{
		Readable: []policy.Entry{{Value: "/opt/engine"}, {Value: "/models/hub/snapshots/1"}},
		Writable: []policy.Entry{{Value: "/scratch"}, {Value: "/home/u/.cache/triton"}},
		Device:   []policy.Entry{{Value: "/dev/kfd"}, {Value: "/dev/dri"}},
		Network:  policy.Entry{Value: "none"},
		Confined: []policy.Confined{{Path: "/home/u/.cache/triton", Root: "/home/u"}},
	}
	diff(t, built, anonymous(f).Settings)
}

// anonymous is f without who said what.
func anonymous(f policy.File) policy.File {
	strip(reflect.ValueOf(&f).Elem())
	f.Files = nil
	return f
}

func strip(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		if v.Len() > 0 { // never those of the original
			c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(c, v)
			v.Set(c)
		}
		for i := range v.Len() {
			strip(v.Index(i))
		}
	case reflect.Struct:
		if by := v.FieldByName("By"); by.IsValid() {
			by.SetString("")
		}
		for i := range v.NumField() {
			strip(v.Field(i))
		}
	}
}

// Each key, in TOML, and what becomes of it. Seeds R12, R15, R17, R23, R24, R34.
func TestKeys(t *testing.T) {
	tests := []struct{ text, want string }{
		{`mode = " Enforced "`, "mode      enforced (policy p.toml:1)\n"},
		{`mode = "off"`, "mode      off (policy p.toml:1)\n"},
		{"read_paths = [\n  '/a b', # why\n  \"{home}\", '{home}/x', '{root}', '{root}/etc/x',\n]", "" +
			"read      /a b (policy p.toml:2)\nread      /home/u (policy p.toml:3)\nread      /home/u/x (policy p.toml:3)\n" +
			"read      / (policy p.toml:3)\nread      /etc/x (policy p.toml:3)\n"},
		{"read_paths = ['/a', '/a']", "read      /a (policy p.toml:1)\n"},
		{"read_paths = []", ""},
		{"read_paths = ['/a/{{cookiecutter.x}}/{', '/…/b..', '/c\td']", "" +
			"read      /a/{{cookiecutter.x}}/{ (policy p.toml:1)\nread      /…/b.. (policy p.toml:1)\nread      /c\td (policy p.toml:1)\n"},
		{"write_paths = ['{scratch_dir}', '{draft_dir}/t']", "write     /scratch (policy p.toml:1)\nwrite     /models/draft/t (policy p.toml:1)\n"},
		{"\n\ndevices = ['/dev/kfd']", "device    /dev/kfd (policy p.toml:3)\n"},
		{"gpu = 'all'\nnpu = ['/dev/accel/accel0', '0000:03:00.0']", "" +
			"gpu       all (policy p.toml:1)\nnpu       /dev/accel/accel0 (policy p.toml:2)\nnpu       0000:03:00.0 (policy p.toml:2)\n"},
		{"network = {}", "network   none (policy p.toml:1)\n"},
		{"network.egress = false", "network   none (policy p.toml:1)\n"},
		{"network = { egress = false, hosts = [] }", "network   none (policy p.toml:1)\n"},
		{"[network]\nhosts = ['*.a.org', 'b:8443']\negress = true", "" +
			"network   egress (policy p.toml:3)\nhost      *.a.org (policy p.toml:2)\nhost      b:8443 (policy p.toml:2)\n"},
		{"env_allowlist = ['HF_HOME', 'é']", "env       HF_HOME (policy p.toml:1)\nenv       é (policy p.toml:1)\n"},
		{"cache = ['go', 'pip']", "cache     go (policy p.toml:1)\ncache     pip (policy p.toml:1)\n"},
		{"tmp = '2G'", "tmp       2G (policy p.toml:1)\n"},
		{"tmp = 4096", "tmp       4096 (policy p.toml:1)\n"},
		{"hide = ['{hf_cache}/token']", "hide      /home/u/.cache/huggingface/token (policy p.toml:1)\n"},
		{"protect = ['{cwd}/.git']", "protect   /work/.git (policy p.toml:1)\n"},
		{"[limits]\nmemory = '8g'\npids = 512\ncpu = 1.50", "limit     memory=8g (policy p.toml:2)\nlimit     pids=512 (policy p.toml:3)\nlimit     cpu=1.5 (policy p.toml:4)\n"},
		{"limits.cpu = 2", "limit     cpu=2 (policy p.toml:1)\n"},
		{"report = '-'", "report    - (policy p.toml:1)\n"},
		{"report = '{cwd}/r.json'", "report    /work/r.json (policy p.toml:1)\n"},
		{"note = 'exempt_container_backend'", "note      exempt_container_backend (policy p.toml:1)\n"},
		{"read_paths = ['/a']\n[narrow]\nread_paths = ['/a/b']\nwrite_paths = []\nenv_allowlist = ['X']\n[narrow.network]\negress = true\nhosts = ['h']", "" +
			"read      /a (policy p.toml:1)\nnarrow\n\tsaid      read_paths (policy p.toml:3)\n\tsaid      write_paths (policy p.toml:4)\n" +
			"\tsaid      env_allowlist (policy p.toml:5)\n\tsaid      network (policy p.toml:6)\n\tnetwork   egress (policy p.toml:7)\n" +
			"\thost      h (policy p.toml:8)\n\tread      /a/b (policy p.toml:3)\n\tenv       X (policy p.toml:5)\n"},
		{"[sandbox]\nmode = 'bwrap'", "mode      bwrap (policy p.toml:2)\n"},
		{"[sandbox.network]\negress = false", "network   none (policy p.toml:2)\n"},
		{"[sandbox]", ""},
		{"[limits]\r\npids = 3\r\n", "limit     pids=3 (policy p.toml:2)\n"},
		{"[limits]\n[network]", "network   none (policy p.toml:2)\n"},
		{`"read_paths" = ["/\u00e9", """/b"""]`, "read      /é (policy p.toml:1)\nread      /b (policy p.toml:1)\n"},
	}
	covered := make(map[string]bool)
	for _, tt := range tests {
		f := mustParse(t, "p.toml", tt.text)
		for _, e := range f.Said {
			covered[e.Value] = true
		}
		f.Said = nil
		diff(t, tt.want, dump(f))
		if _, err := f.Settings.Validate(); err != nil {
			t.Errorf("%s: what was read is not valid: %v", tt.text, err)
		}
	}
	for _, k := range keys() {
		if !covered[k.name] && k.name != "extends" {
			t.Errorf("no test reads %s", k.name)
		}
	}
}

// A list that is empty and one that is absent, a network that is none and one that was not said, are different things.
func TestSaid(t *testing.T) {
	f := mustParse(t, "p", "devices = []\nnetwork = {egress = false}")
	diff(t, "said      devices (policy p:1)\nsaid      network (policy p:2)\nnetwork   none (policy p:2)\n", dump(f))
	f = mustParse(t, "p", `{"sandbox": {}}`)
	diff(t, policy.File{Files: []string{"p"}}, f)
}

func TestFormat(t *testing.T) {
	for name, text := range map[string]string{
		"a.toml": "mode = 'bwrap'", "A.TOML": "mode = 'bwrap'", "a.json": `{"mode": "bwrap"}`, "A.Json": " \n{\"mode\": \"bwrap\"}\n",
		"a": "# x\nmode = 'bwrap'", "b": "\t\r\n {\"mode\": \"bwrap\"}", "a.json.bak": "mode = 'bwrap'", "/dev/fd/63": `{"mode": "bwrap"}`, "": `{"mode": "bwrap"}`,
	} {
		if f := mustParse(t, name, text); f.Settings.Mode.Value != "bwrap" {
			t.Errorf("%s: the mode is %v", name, f.Settings.Mode)
		}
	}
	if _, err := Parse("a.toml", []byte("{}"), opts); err == nil {
		t.Error("JSON was read in a file .toml")
	}
	if _, err := Parse("a.json", []byte("mode = 'bwrap'"), opts); err == nil {
		t.Error("TOML was read in a file .json")
	}
}

const (
	egressHint = "write { egress = true, hosts = [...] }, in JSON {\"egress\": true, \"hosts\": [...]}; the host's whole network is not a policy's to grant"
	hostHint   = "write a name or *.name, with :PORT where it is not 80 or 443"
	emptyIs    = "a policy that grants nothing says so, for example read_paths = []"
	bareHint   = `text stands in quotes, as in mode = "bwrap"`
	saveHint   = "save it as UTF-8 without a byte order mark"
	topKeys    = "accepted are mode, read_paths, write_paths, devices, gpu, npu, network, env_allowlist, cache, tmp, hide, protect, limits, report, note, narrow, extends"
	deltaKeys  = "accepted are read_paths, write_paths, devices, gpu, npu, network, env_allowlist, cache, hide, protect"
)

// Every error with its exact place, its cause and its hint. Seeds R14, R17, R23, R24, R35, R40, H6.
func TestErrors(t *testing.T) {
	tests := []struct{ name, text, at, cause, hint string }{
		// The document.
		{"p.toml", "", "", "it is empty", emptyIs},
		{"p.json", " \n\t", "", "it is empty", emptyIs},
		{"p", "\n# mode = 'off'\n\n", "", "nothing but comments is in it", emptyIs},
		{"p", strings.Repeat("#", 1<<20) + "\n", "", "it is larger than 1 MiB", "a policy is a short text: is it the right file?"},
		{"p", "\xef\xbb\xbf{}", "1:1", "it begins with a byte order mark", saveHint},
		{"p", "\xff\xfe{\x00}\x00", "1:1", "it is UTF-16", saveHint},
		{"p", "mode = 'off'\n#\x00", "2:2", "it contains a NUL byte", "a policy is text: is it the right file?"},
		{"p", "\n# \xe9t\xe9", "2:3", "it is not UTF-8", saveHint},
		{"p.json", `{"mode": "off"} x`, "1:17", "JSON: invalid character 'x' after top-level value", ""},
		{"p.json", `{"mode": "off"}{}`, "1:16", "JSON: invalid character '{' after top-level value", ""},
		{"p.json", "{\"mode\": \"off\",\n}", "2:1", "JSON: invalid character '}' looking for beginning of object key string", ""},
		{"p.json", "{\n\"mode\": \"of", "2:12", "JSON: unexpected end of JSON input", ""},
		{"p.json", "{\n\"mode\": \"\\x\"}", "2:11", "JSON: invalid character 'x' in string escape code", ""},
		{"p.json", `{"read_paths": ["/\ud800"]}`, "1:17", `JSON: a \u escape in it is no character`, ""},
		{"p.json", `{"\udc00": 1}`, "1:2", `JSON: a \u escape in it is no character`, ""},
		{"p.json", `[]`, "1:1", "a policy is an object, not a list", ""},
		{"p.json", `null`, "1:1", "a policy is an object, not null", ""},
		{"p.json", "{\"mode\": \"off\",\n \"mode\": \"bwrap\"}", "2:2", `the key "mode" is there twice, first in line 1`, "keep one of them"},
		{"p.json", "{\"network\": {\"egress\": false, \"egress\": true}}", "1:31", `the key "egress" is there twice, first in line 1`, "keep one of them"},
		{"p.json", `{"x":[[[[[[[[1]]]]]]]]}`, "1:13", "it is nested deeper than any policy", ""},
		{"p.toml", "mode = 'off'\nmode = 'bwrap'", "2:1", `the key "mode" is there twice, first in line 1`, "keep one of them"},
		{"p.toml", "[limits]\npids = 1\n[limits]\ncpu = 1", "3:2", `the key "limits" is there twice, first in line 1`, "keep one of them"},
		{"p.toml", "limits = {pids = 1}\n[limits]\ncpu = 1", "2:2", `the key "limits" is there twice, first in line 1`, "keep one of them"},
		{"p.toml", "limits = {pids = 1}\nlimits.cpu = 1", "2:1", `the key "limits" is there twice, first in line 1`, "keep one of them"},
		{"p.toml", "limits.pids = 1\n[limits]\ncpu = 1", "2:2", `the key "limits" is there twice, first in line 1`, "keep one of them"},
		{"p.toml", "narrow = {network.egress = false}\n[narrow.network]", "2:2", `the key "narrow" is there twice, first in line 1`, "keep one of them"},
		{"p.toml", "network = {egress = false, egress = true}", "1:28", `the key "egress" is there twice, first in line 1`, "keep one of them"},
		{"p.toml", "[[limits]]\npids = 1", "1:3", "no key of a policy is a list of tables", "write it with one pair of brackets"},
		{"p.toml", "x = [[[[[[[[1]]]]]]]]", "1:5", "it is nested deeper than any policy", ""},
		{"p.toml", "x = " + strings.Repeat("[", 10001), "1:10005", "it is nested deeper than any policy", ""},
		{"p.toml", "a.b.c.d.e.f.g.h.i = 1", "1:17", "it is nested deeper than any policy", ""},
		{"p.toml", "[a.b.c.d.e.f.g.h.i]", "1:18", "it is nested deeper than any policy", ""},
		{"p.toml", "mode = 'off'\nmode", "2:5", "TOML: expected = after a key, but the document ends there", ""},
		{"p.toml", "mode = 'off' x", "1:14", "TOML: expected newline but got U+0078 'x'", ""},
		{"p.toml", "mode = ", "1:8", "TOML: expected value, not eof", ""},
		{"p.toml", "mode = off", "1:8", "TOML: incomplete number", bareHint},
		{"p.toml", "read_paths = ['/a', /b]", "1:21", "TOML: incomplete number", bareHint},
		{"p.toml", "env_allowlist = [TOKEN=hunter2]", "1:18", "TOML: incomplete number", bareHint},
		{"p.toml", "network = { egress = True }", "1:22", "TOML: incomplete number", "write true or false, in lower case"},
		{"p.toml", "tmp = 2G", "1:8", "TOML: expected newline but got U+0047 'G'", ""},
		{"p.toml", "{}", "1:1", "TOML: invalid character at start of key: {", ""},
		{"p.toml", "read_paths = [\n\"/a\"\n", "3:1", "TOML: expected character ] but the document ended here", ""},
		// The box.
		{"p.json", `{"sandbox": [1]}`, "1:13", `"sandbox" is an object, not a list`, ""},
		{"p.toml", "mode = 'off'\n[sandbox]\n", "1:1", `the key "mode" stands beside "sandbox"`, `all keys of a policy stand in "sandbox", or none`},
		{"p.json", `{"sandbox": {"sandbox": {}}}`, "1:14", `unknown key "sandbox"`, topKeys},
		{"p.toml", strings.Repeat("k", 201) + " = 1", "1:1", `unknown key "` + strings.Repeat("k", 200) + `"...`, topKeys},
		{"p.toml", "hide = ['/" + strings.Repeat("{", 4096) + "']", "1:9", `an element of "hide" is longer than 4096 bytes`, ""},
		// Keys.
		{"p.toml", "\n  raed_paths = []", "2:3", `unknown key "raed_paths"`, "did you mean read_paths?"},
		{"p.json", `{"Mode": "off"}`, "1:2", `unknown key "Mode"`, "did you mean mode?"},
		{"p.toml", "writable = []", "1:1", `unknown key "writable"`, "did you mean write_paths?"},
		{"p.toml", "hosts = ['a']", "1:1", `unknown key "hosts"`, "did you mean network?"},
		{"p.toml", "environment = 1", "1:1", `unknown key "environment"`, "did you mean env_allowlist?"},
		{"p.toml", "secrets = ['A']", "1:1", `unknown key "secrets"`, "a secret is let through for one run only, with --secret NAME"},
		{"p.toml", "bwrap = '/x'", "1:1", `unknown key "bwrap"`, topKeys},
		{"p.toml", "'a\\n\"' = 1", "1:1", `unknown key "a\\n\""`, topKeys},
		{"p.toml", "[narrow]\nmode = 'off'", "2:1", `"mode" cannot stand in narrow`, deltaKeys},
		{"p.toml", "[narrow]\nnarrow = {}", "2:1", `"narrow" cannot stand in narrow`, deltaKeys},
		{"p.toml", "[narrow]\nlimit = 1", "2:1", `unknown key "limit"`, deltaKeys},
		{"p.toml", "[narrow]\ndevcies = 1", "2:1", `unknown key "devcies"`, "did you mean devices?"},
		{"p.toml", "narrow = 1", "1:10", `"narrow" is an object, not an integer`, ""},
		// Types.
		{"p.toml", "mode = 1", "1:8", "the mode is a string, not an integer", ""},
		{"p.toml", "mode = ['off']", "1:8", "the mode is a string, not a list", ""},
		{"p.json", `{"mode": null}`, "1:10", "the mode is a string, not null", ""},
		{"p.toml", "mode = ''", "1:8", "the mode is empty", "leave it out"},
		{"p.toml", "mode = \"a\\u0000\"", "1:8", "the mode contains a NUL byte", ""},
		{"p.toml", "read_paths = '/a'", "1:14", `"read_paths" is a list, not a string`, ""},
		{"p.toml", "read_paths = ['/a', 7]", "1:21", `an element of "read_paths" is a string, not an integer`, ""},
		{"p.toml", "read_paths = ['/a',\n  true]", "2:3", `an element of "read_paths" is a string, not true or false`, ""},
		{"p.toml", "read_paths = ['/a',\n  1979-05-27]", "2:3", `an element of "read_paths" is a string, not a date or time`, ""},
		{"p.toml", "read_paths = ['/a',\n  {}]", "2:3", `an element of "read_paths" is a string, not an object`, ""},
		{"p.toml", "read_paths = [\n  ['/a']]", "1:14", `an element of "read_paths" is a string, not a list`, ""},
		{"p.json", "{\"read_paths\": [\n  [\"/a\"]]}", "2:3", `an element of "read_paths" is a string, not a list`, ""},
		{"p.json", `{"write_paths": {"a": "/b"}}`, "1:17", `"write_paths" is a list, not an object`, ""},
		{"p.json", `{"devices": ["/dev/dri", ""]}`, "1:26", `an element of "devices" is empty`, "leave it out"},
		{"p.toml", "gpu = 'some'", "1:7", `"gpu" is "all" or a list of strings`, ""},
		{"p.toml", "gpu = true", "1:7", `"gpu" is a list, not true or false`, ""},
		{"p.toml", "npu = [0]", "1:8", `an element of "npu" is a string, not an integer`, ""},
		{"p.toml", "cache = 'go'", "1:9", `"cache" is a list, not a string`, ""},
		{"p.toml", "hide = '/a'", "1:8", `"hide" is a list, not a string`, ""},
		{"p.toml", "protect = 1.5", "1:11", `"protect" is a list, not a number`, ""},
		{"p.toml", "report = ['a']", "1:10", `"report" is a string, not a list`, ""},
		{"p.toml", "report = 'r.json'", "1:10", `the path "r.json" is relative`, "write it in full, or begin it with a token such as {cwd}, {repo} or {home}"},
		{"p.toml", "note = 1", "1:8", `"note" is a string, not an integer`, ""},
		{"p.toml", "extends = 1", "1:11", `"extends" is a list, not an integer`, ""},
		{"p.toml", "extends = ''", "1:11", `"extends" is empty`, "leave it out"},
		{"p.toml", "extends = '~/x'", "1:11", `the path "~/x" begins with ~`, `write "{home}/x"`},
		{"p.toml", "mode = 'off'\nextends = ['a', 'b']", "2:12", "extends needs a file that it is relative to", "pass the policy as a file"},
		// Words.
		{"p.toml", "mode = 'enforcd'", "1:8", `unknown mode "enforcd"; accepted are off, bwrap, landlock, auto, enforced, scrubbed_only, disabled`, "did you mean enforced?"},
		{"p.toml", "mode = 'of'", "1:8", `unknown mode "of"; accepted are off, bwrap, landlock, auto, enforced, scrubbed_only, disabled`, ""},
		{"p.toml", "mode = 'learn'", "1:8", `unknown mode "learn"; accepted are off, bwrap, landlock, auto, enforced, scrubbed_only, disabled`, ""},
		{"p.toml", "env_allowlist = ['TOKEN=hunter2']", "1:18", "env_allowlist has names of variables, not NAME=VALUE", `write "TOKEN" and set it in the environment`},
		{"p.toml", "env_allowlist = ['AWS_*']", "1:18", `"AWS_*" is no name of a variable`, ""},
		{"p.toml", "env_allowlist = 'A'", "1:17", `"env_allowlist" is a list, not a string`, ""},
		// The network.
		{"p.toml", "network = true", "1:11", "network is an object, not true or false", egressHint},
		{"p.toml", "network = 'None'", "1:11", "network is an object, not a string", "leave it out: none is what an absent network means, and so does { egress = false }"},
		{"p.toml", "read_paths = [" + strings.Repeat("'/a',\n", 1001) + "]", "1001:1", `"read_paths" has more than 1000 elements, it has 1001`, "name the directories that hold them"},
		{"p.toml", "network = 'full'", "1:11", "network is an object, not a string", egressHint},
		{"p.json", `{"network": {"egress": true}}`, "1:24", "egress is true and no host is named", egressHint},
		{"p.json", `{"network": {"egress": true, "hosts": []}}`, "1:24", "egress is true and no host is named", egressHint},
		{"p.json", `{"network": {"egress": "true", "hosts": ["a"]}}`, "1:24", `"egress" is true or false, not a string`, ""},
		{"p.json", `{"network": {"egress": false, "hosts": ["a"]}}`, "1:31", "hosts are named and egress is not true", egressHint},
		{"p.json", `{"network": {"hosts": ["a"]}}`, "1:14", "hosts are named and egress is not true", egressHint},
		{"p.json", `{"network": {"host": ["a"]}}`, "1:14", `unknown key "host"`, "did you mean hosts?"},
		{"p.json", `{"network": {"full": true}}`, "1:14", `unknown key "full"`, "accepted are egress, hosts"},
		{"p.json", `{"network": {"egress": true, "hosts": "a"}}`, "1:39", `"hosts" is a list, not a string`, ""},
		{"p.json", `{"network": {"egress": true, "hosts": ["https://u:hunter2@a"]}}`, "1:40", `an element of "hosts" is a URL, not a host`, "write only the name in it, without https:// and what follows the name"},
		{"p.json", `{"network": {"egress": true, "hosts": ["u:hunter2@a"]}}`, "1:40", `an element of "hosts" has a user in it`, "write only what follows the @"},
		{"p.json", `{"network": {"egress": true, "hosts": ["a:hunter2"]}}`, "1:40", `"a" has a port that is none`, "write NAME:PORT with a port from 1 to 65535"},
		{"p.json", `{"network": {"egress": true, "hosts": ["a.b/hunter2"]}}`, "1:40", `"a.b" has a path in it`, "write only the host, without what follows the name"},
		{"p.json", `{"network": {"egress": true, "hosts": ["*.com"]}}`, "1:40", `"*.com" names all of a top-level domain`, "two labels or more must follow the *., as in *.example.org"},
		{"p.json", `{"network": {"egress": true, "hosts": ["a b"]}}`, "1:40", `an element of "hosts" has a character that no host has`, hostHint},
		{"p.json", `{"network": {"egress": true, "hosts": ["a", "*"]}}`, "1:45", `"*" names every host`, hostHint},
		{"p.json", `{"network": {"egress": true, "hosts": ["*.*:443"]}}`, "1:40", `"*.*:443" names every host`, hostHint},
		{"p.json", `{"network": {"egress": true, "hosts": [":443"]}}`, "1:40", `":443" names every host`, hostHint},
		// Sizes and limits.
		{"p.toml", "tmp = '2GB'", "1:7", `"tmp" is no size: "2GB"`, `write a number of bytes above 0, or "512M", "2G"`},
		{"p.toml", "tmp = -1", "1:7", `"tmp" is no size: "-1"`, `write a number of bytes above 0, or "512M", "2G"`},
		{"p.toml", "tmp = 1.5", "1:7", `"tmp" is a string or an integer, not a number`, ""},
		{"p.toml", "limits = 1", "1:10", `"limits" is an object, not an integer`, ""},
		{"p.toml", "[limits]\nmem = 1", "2:1", `unknown key "mem"`, "accepted are memory, pids, cpu"},
		{"p.toml", "[limits]\npid = 1", "2:1", `unknown key "pid"`, "did you mean pids?"},
		{"p.toml", "[limits]\nmemory = 0", "2:10", `"memory" is no size: "0"`, `write a number of bytes above 0, or "512M", "2G"`},
		{"p.toml", "[limits]\npids = '5'", "2:8", `"pids" is an integer, not a string`, ""},
		{"p.toml", "[limits]\npids = 0x10", "2:8", `"pids" is no count: "0x10"`, "write a number above 0 in decimal digits"},
		{"p.toml", "[limits]\npids = 99999999999999999999", "2:8", `"pids" is no count: "99999999999999999999"`, "write a number above 0 in decimal digits"},
		{"p.toml", "[limits]\ncpu = inf", "2:7", `"cpu" is no number of processors: "inf"`, "write a number above 0, such as 2 or 1.5"},
		{"p.toml", "[limits]\ncpu = nan", "2:7", `"cpu" is no number of processors: "nan"`, "write a number above 0, such as 2 or 1.5"},
		{"p.json", `{"limits": {"cpu": -1}}`, "1:20", `"cpu" is no number of processors: "-1"`, "write a number above 0, such as 2 or 1.5"},
		{"p.json", `{"limits": {"cpu": 1e999}}`, "1:20", `"cpu" is no number of processors: "1e999"`, "write a number above 0, such as 2 or 1.5"},
		{"p.json", `{"limits": {"cpu": 0.0}}`, "1:20", `"cpu" is no number of processors: "0.0"`, "write a number above 0, such as 2 or 1.5"},
		// Paths and tokens.
		{"p.toml", "read_paths = ['a/b']", "1:15", `the path "a/b" is relative`, "write it in full, or begin it with a token such as {cwd}, {repo} or {home}"},
		{"p.toml", "read_paths = ['/a', '.']", "1:21", `the path "." is relative`, "write it in full, or begin it with a token such as {cwd}, {repo} or {home}"},
		{"p.toml", "read_paths = ['~']", "1:15", `the path "~" begins with ~`, `write "{home}"`},
		{"p.json", "{\"write_paths\":\n [ \"~/.cache\"]}", "2:4", `the path "~/.cache" begins with ~`, `write "{home}/.cache"`},
		{"p.toml", "hide = ['~bob/x']", "1:9", `the path "~bob/x" begins with ~`, "~ means the home only to a shell"},
		{"p.toml", "read_paths = ['/a/../b']", "1:15", `the path "/a/../b" has a ".." in it`, "write where it leads"},
		{"p.toml", "read_paths = ['{scratch_dir}/..']", "1:15", `the path "{scratch_dir}/.." has a ".." in it`, "write where it leads"},
		{"p.toml", "read_paths = ['{model}']", "1:15", `unknown token "{model}"`, "known are {cwd}, {draft_dir}, {exe_dir}, {hf_cache}, {home}, {model_dir}, {repo}, {root}, {scratch_dir}, {unset}, {wrong}"},
		{"p.toml", "read_paths = ['{draft_dri}']", "1:15", `unknown token "{draft_dri}"`, "did you mean {draft_dir}?"},
		{"p.toml", "read_paths = ['{HOME}/x']", "1:15", `unknown token "{HOME}"`, "did you mean {home}?"},
		{"p.toml", "read_paths = ['{home']", "1:15", `the path "{home" begins with { and has no }`, "a token is written {NAME}"},
		{"p.toml", "read_paths = ['{home}x']", "1:15", "after the token {home} comes neither / nor the end of the path", ""},
		{"p.toml", "read_paths = ['/x/{home}']", "1:15", `the token "{home}" is not at the beginning of its path`, "a token is an absolute path, so only / and more can follow it"},
		{"p.toml", "read_paths = ['{home}/{cwd}']", "1:15", `the token "{cwd}" is not at the beginning of its path`, "a token is an absolute path, so only / and more can follow it"},
		{"p.toml", "read_paths = ['/{{foo}}']", "1:15", `the token "{foo}" is not at the beginning of its path`, "a token is an absolute path, so only / and more can follow it"},
		{"p.toml", "read_paths = ['{repo}']", "1:15", "the token {repo} has no value here", "run in a version control checkout, or write the path in full"},
		{"p.toml", "read_paths = ['{unset}/x']", "1:15", "the token {unset} has no value here", given},
		{"p.toml", "read_paths = ['{wrong}/x']", "1:15", `the value of the token {wrong} is no absolute path: "models"`, given},
	}
	for _, tt := range tests {
		_, err := Parse(tt.name, []byte(tt.text), opts)
		if err == nil {
			t.Errorf("no error: %.200s", tt.text)
			continue
		}
		var r *refusal.Error
		if !errors.As(err, &r) {
			t.Errorf("%T is no refusal", err)
			continue
		}
		object := tt.name
		if tt.at != "" {
			object += ":" + tt.at
		}
		want := refusal.Error{What: "wrong policy", Object: object, Cause: tt.cause, Hint: tt.hint}
		if *r != want {
			t.Errorf("%.200s\n got %#v\nwant %#v", tt.text, *r, want)
		}
		if strings.Contains(err.Error()+r.Hint, "hunter2") {
			t.Errorf("a secret is printed: %v", err)
		}
	}
}

// A token with a value is known without Options; one that is known without a value says how to get one.
func TestKnownTokens(t *testing.T) {
	for _, k := range known {
		text := []byte("read_paths = ['{" + k.name + "}/x']")
		_, err := Parse("p", text, Options{})
		var r *refusal.Error
		if !errors.As(err, &r) || r.Cause != "the token {"+k.name+"} has no value here" || r.Hint != k.from || k.from == "" {
			t.Errorf("%s: %#v", k.name, r)
		}
		f, err := Parse("p", text, Options{Tokens: map[string]string{k.name: "/v"}})
		if err != nil || len(f.Settings.Readable) != 1 || f.Settings.Readable[0].Value != "/v/x" {
			t.Errorf("%s: %v %v", k.name, f.Settings.Readable, err)
		}
	}
}

// A file's name can hold what moves a terminal's cursor.
func TestName(t *testing.T) {
	_, err := Parse("a\x1b[2J.toml", []byte("x = 1"), opts)
	if err == nil || !strings.Contains(err.Error(), `a\x1b[2J.toml:1:1`) {
		t.Errorf("%v", err)
	}
	f := mustParse(t, "a\nb", "mode = 'off'")
	diff(t, policy.Entry{Value: "off", By: `policy a\x0ab:1`}, f.Settings.Mode)
}
