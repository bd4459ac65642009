package env

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/selfcage/selfcage/internal/refusal"
)

const twelve = "legal winner thank year wave sausage worth useful legal winner thank yellow"

// secretEntries are secrets whatever the level, and whoever allows them. Each value is one that no rule's text holds.
var secretEntries = []string{
	// by name
	"MYSQL_PWD=hunter2", "REDISCLI_AUTH=hunter2", "PGPASSWORD=hunter2", "SSHPASS=hunter2", "NPM_CONFIG__AUTH=hunter2",
	"npm_config__authToken=hunter2", "DOCKER_AUTH_CONFIG={hunter2}", "COMPOSER_AUTH={hunter2}", "AWS_ACCESS_KEY_ID=hunter2",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=/v2/hunter2", "OP_SESSION_my=hunter2", "TF_TOKEN_app_terraform_io=hunter2", "SLURM_JWT=hunter2",
	"CI_JOB_JWT=hunter2", "BW_SESSION=hunter2", "SOPS_AGE_KEY=hunter2", "AUTHORIZATION=hunter2", "DD_APP_KEY=hunter2",
	// by the last word
	"AWS_SESSION_TOKEN=hunter2", "AWS_SECRET_ACCESS_KEY=hunter2", "GITHUB_TOKEN=hunter2", "GH_TOKEN=hunter2", "GITLAB_TOKEN=hunter2",
	"CI_JOB_TOKEN=hunter2", "HF_TOKEN=hunter2", "HUGGING_FACE_HUB_TOKEN=hunter2", "MODELSCOPE_API_TOKEN=hunter2", "NODE_AUTH_TOKEN=hunter2",
	"CARGO_REGISTRY_TOKEN=hunter2", "GEM_HOST_API_KEY=hunter2", "TWINE_PASSWORD=hunter2", "HCLOUD_TOKEN=hunter2", "VAULT_TOKEN=hunter2",
	"CONSUL_HTTP_TOKEN=hunter2", "NOMAD_TOKEN=hunter2", "OP_SERVICE_ACCOUNT_TOKEN=hunter2", "SLACK_BOT_TOKEN=hunter2",
	"SENTRY_AUTH_TOKEN=hunter2", "OPENAI_API_KEY=hunter2", "ANTHROPIC_API_KEY=hunter2", "WANDB_API_KEY=hunter2", "KAGGLE_KEY=hunter2",
	"AZURE_CLIENT_SECRET=hunter2", "ARM_CLIENT_SECRET=hunter2", "CLOUDSDK_AUTH_ACCESS_TOKEN=hunter2", "CF_API_KEY=hunter2",
	"SANDBOX_OWN_TOKEN=hunter2", "LC_SECRET=hunter2", "SLURM_DB_PASSWORD=hunter2", "PMI_AUTH_TOKEN=hunter2", "LD_TOKEN=hunter2",
	"XDG_SESSION_COOKIE=hunter2", "AUTH_SESSION=hunter2", "GITHUB_PAT=hunter2", "BORG_PASSPHRASE=hunter2", "DB_PASS=hunter2",
	"SECRET_KEY_BASE=hunter2", "PRIVATE_KEY_PEM=hunter2", "openaiApiKey=hunter2", "SLACK_KEY=hunter2", "GCP_KEY=hunter2",
	"RECOVERY_KEY=hunter2", "VNC_PASSCODE=hunter2", "NPM_KEY=hunter2",
	// several of them
	"APP_SECRETS=hunter2", "SECRETS=hunter2", "appSecrets=hunter2", "DB_PASSWORDS=hunter2", "DBPASSWORDS=hunter2", "APP_PASSWDS=hunter2",
	"OLD_PASSPHRASES=hunter2", "APP_CREDENTIALS={hunter2}", "API_KEYS=hunter2,b", "OPENAI_API_KEYS=hunter2,b", "GEMINI_KEYS=hunter2,b",
	"DEPLOY_KEYS=hunter2,b", "APP_APIKEYS=hunter2", "myApiKeys=hunter2", "SSH_PRIVATE_KEYS=hunter2", "GITHUB_TOKENS=hunter2,b",
	"BOT_TOKENS=hunter2,b", "AUTH_TOKENS=hunter2", "PERSONAL_ACCESS_TOKENS=hunter2", "authTokens=hunter2", "HTTP_COOKIES=sid=hunter2",
	// PINs, one-time passwords and second factors
	"YUBIKEY_PIN=918273", "PKCS11_PIN=918273", "HSM_USER_PIN=918273", "SO_PIN=hunter2", "SIM_PIN=9182", "TOKEN_PIN2=9182", "PIN=9182",
	"NPM_CONFIG_OTP=918273", "OTP=918273", "GEM_HOST_OTP_CODE=918273", "VAULT_OTP=hunter2", "GITHUB_2FA=918273", "2FA=918273",
	"MFA=918273", "AWS_MFA_CODE=918273", "RECOVERY_CODES=hunter2 b", "BACKUP_CODES=hunter2 b", "LOGIN_TOTP=918273", "TOTP_KEY=hunter2",
	"TOTP_SEED=HUNTER2", "MFA_PIN=9182",
	// wallets and other seeds
	"MNEMONIC=" + twelve, "WALLET_MNEMONIC=hunter2", "SEED_PHRASE=" + twelve, "RECOVERY_PHRASE=hunter2", "PASS_PHRASE=hunter2",
	"WALLET_SEEDPHRASE=hunter2", "SEED_WORDS=" + twelve, "MNEMONIC_PHRASE=hunter2", "WALLET_SEED=hunter2", "NKEY_SEED=hunter2",
	"BIP39_SEED=hunter2", "SEED=" + twelve,
	// by value
	"A_URL=postgres://u:hunter2@h/d", "HTTPS_PROXY=http://u:hunter2@h:1", "TERM=ghp_" + a36, "LANG=" + testJWT, "LC_NAME=glpat-abcdefghijklmnopqrst",
	"SLURM_X=ghp_" + a36, "GIT_CONFIG_VALUE_0=AUTHORIZATION: basic aHVudGVyMjpodW50ZXIy", "SANDBOX_POLICY=sk-ant-api03-" + a36,
	"QR=otpauth://totp/a?secret=HUNTER2HUNTER2", "QR_ALL=otpauth-migration://offline?data=HUNTER2HUNTER2",
}

// harmlessEntries pass the scrubbed level as they are, and the clean one when they are allowed.
var harmlessEntries = []string{
	"TOKENIZERS_PARALLELISM=false", "KEYBOARD=us", "GIT_AUTHOR_NAME=A U Thor", "GIT_AUTHOR_EMAIL=a@b.c", "MONKEY_PATCH=x", "MONKEY_KEYS=x",
	"PATH=/usr/bin:/bin", "USER=u", "LOGNAME=u", "TERM=xterm", "COLORTERM=truecolor", "NO_COLOR=y", "LANG=C.UTF-8", "LANGUAGE=en",
	"LC_ALL=C", "TZ=UTC", "COLUMNS=80", "CI=true", "DEBUG=x", "EDITOR=vi", "MAIL=/var/mail/u", "A NAME=with a space",
	// vendors
	"AWS_REGION=eu-west-1", "AWS_PROFILE=dev", "AWS_MFA_SERIAL=arn:x", "AZURE_CLIENT_ID=0a", "ARM_TENANT_ID=0a", "GOOGLE_CLOUD_PROJECT=p",
	"GITHUB_SHA=abc", "GITHUB_OUTPUT=/home/r/out", "GITLAB_CI=true", "CF_PAGES_BRANCH=main", "NPM_CONFIG_REGISTRY=https://r",
	"npm_package_name=x", "OPENAI_BASE_URL=http://h/v1", "WANDB_MODE=offline", "VAULT_ADDR=https://v", "HF_HOME=/models",
	"HF_HUB_OFFLINE=1", "SENTRY_ENVIRONMENT=ci", "DD_ENV=ci", "SLACK_CHANNEL=x", "COMET_PROJECT_NAME=x", "KAGGLE_USERNAME=u",
	"STRIPE_PUBLISHABLE_KEY=pk_test_1", "CARGO_HOME=/c", "COMET_EXPERIMENT_KEY=0a1b",
	// what executes
	"LD_LIBRARY_PATH=/opt/rocm/lib", "LD_PRELOAD=libfaketime.so", "PYTHONPATH=/src", "NODE_OPTIONS=--max-old-space-size=4096",
	"BASH_ENV=/src/env", "GOFLAGS=-mod=mod", "GIT_DIR=/src/.git", "PERL5LIB=/src", "JAVA_TOOL_OPTIONS=-Xmx1g", "BASH_FUNC_f%%=() {  echo hi; }",
	// proxies and certificates
	"HTTP_PROXY=http://proxy:3128", "NO_PROXY=localhost", "SSL_CERT_FILE=relative.pem",
	// words that only look like a secret's
	"KEY=a", "SORT_KEY=name", "HOTKEY=ctrl", "PUBLIC_KEY=ssh-ed25519 AAAA", "CACHE_KEYS=a b", "SORT_KEYS=1", "PRIMARY_KEYS=id", "KEYS=a b",
	"MAX_TOKENS=4096", "TOKENS=a b", "NUM_TOKENS=7", "CONTEXT_TOKENS=8k", "SPECIAL_TOKENS=<s> </s>", "OPENAI_MAX_TOKENS=512",
	"GITHUB_TOKENS=5000", "STOP_TOKENS=x", "EOS_TOKEN=</s>", "TOKENIZER=bpe", "TOKEN_COUNT=7", "SECRETARY=Bob", "SECRETS_DIR=/src/s",
	"PASSWORD_MIN_LENGTH=8", "PASSPORT=1", "COMPASS=north", "RENDER_PASS=shadow", "COOKIE_NAME=sid", "BROWSER_COOKIES=firefox",
	"COOKIECUTTER_CONFIG=/src/cc.yaml", "AUTHOR=me", "AUTH=basic", "USE_AUTH_TOKEN=true", "CREDENTIAL_HELPER=store", "KEYRING=a",
	"API_KEY_HEADER=X-Api-Key", "AUTH_TOKEN_URL=https://id/token", "PATIENCE=1", "PATCH=1", "SESSION=work", "DESKTOP_SESSION=gnome",
	"LABEL_KEYS=a", "GRAPHICS_PASS=2", "CERT=-----BEGIN CERTIFICATE-----", "DATABASE_URL=postgres://u@h/d", "REMOTE=git@github.com:o/r.git",
	// PINs, one-time passwords, second factors
	"GPIO_PIN=17", "LED_PIN=4", "RESET_PIN=PA3", "PIN=17", "I_MPI_PIN=1", "I_MPI_PIN_DOMAIN=core", "CPU_PIN=0-3", "CARD_PIN=12",
	"SPIN=1", "PINNED=yes", "PINENTRY_USER_DATA=USE_CURSES=1", "OTP=26.2.1", "OTP_VERSION=26", "ERLANG_OTP=maint-26", "ENABLE_OTP=sms",
	"ENABLE_2FA=sms", "MFA=u2f", "GITHUB_MFA=duo", "MFA_ROOT_DIR=/src/mfa", "EXIT_CODE=3", "ERROR_CODES=1 2", "BACKUP_CODE=full",
	// seeds
	"SEED=42", "RANDOM_SEED=42", "PYTHONHASHSEED=0", "PL_GLOBAL_SEED=1", "WALLET_SEED=42", "SEEDS=1,2", "STOP_WORDS=a b", "SEED_WORDS=24",
	"BIP39_WORDS=/src/english.txt", "KEY_PHRASE=open", "MENU_MNEMONIC=F", "OPCODE_MNEMONIC=mov",
	// launchers and settings of cages
	"SLURM_PROCID=3", "PMI_RANK=0", "FLUX_URI=local:///x", "SANDBOX_MODE=bwrap", "HYPERLOOM_SANDBOX_READABLE=/src", "PAYPAL_SANDBOX_ACCOUNT=1",
}

func nameOf(entry string) string {
	name, _, _ := strings.Cut(entry, "=")
	return name
}

// Seeds R17, R18: no allowlist lets a secret through, at either level; the error names it and says what does.
func TestSecretsAtBothLevels(t *testing.T) {
	for _, clean := range []bool{false, true} {
		for _, entry := range secretEntries {
			name, value, _ := strings.Cut(entry, "=")
			kept, dropped, err := Scrub([]string{entry}, Rules{Clean: clean, Visible: inside})
			if err != nil || len(kept) != 0 || len(dropped) != 1 || !strings.HasPrefix(dropped[0].Rule, "secret ") &&
				!strings.HasPrefix(dropped[0].Rule, "value looks like ") {
				t.Errorf("clean %v, %s: kept %v, dropped %v, %v; want it dropped as a secret", clean, name, kept, dropped, err)
			}
			_, _, err = Scrub([]string{entry}, Rules{Clean: clean, Allow: []string{name}, Visible: inside})
			var refused *refusal.Error
			if !errors.As(err, &refused) || refused.Object != quote(name) || refused.Hint != "--secret "+quote(name)+" passes it on this run" {
				t.Errorf("clean %v, %s allowed: got %v, want a refusal that names it and offers --secret", clean, name, err)
				continue
			}
			if text := err.Error() + refused.Hint; strings.Contains(text, value) || len(dropped) == 1 && strings.Contains(dropped[0].Rule, value) {
				t.Errorf("%s: %q or %v shows the value", name, text, dropped)
			}
			kept, _, err = Scrub([]string{entry}, Rules{Clean: clean, Secret: []string{name}})
			if err != nil || len(kept) != 1 || kept[0] != (Kept{name, value, "--secret"}) {
				t.Errorf("clean %v, %s by --secret: kept %v, %v", clean, name, kept, err)
			}
		}
	}
	if len(secretEntries) < 100 {
		t.Errorf("only %d rows", len(secretEntries))
	}
}

func TestHarmlessAtBothLevels(t *testing.T) {
	listed := 0
	for _, entry := range harmlessEntries {
		name := nameOf(entry)
		for _, rules := range []Rules{{}, {Allow: []string{name}}, {Clean: true, Allow: []string{name}}} {
			rules.Visible = inside
			kept, dropped, err := Scrub([]string{entry}, rules)
			if err != nil || len(dropped) != 0 || len(kept) != 1 || kept[0].Name+"="+kept[0].Value != entry {
				t.Errorf("%s: clean %v, allowed %q: kept %v, dropped %v, %v; want it kept", entry, rules.Clean, rules.Allow, kept, dropped, err)
			}
		}
		kept, dropped, err := Scrub([]string{entry}, Rules{Clean: true, Visible: inside})
		switch {
		case err != nil:
			t.Errorf("%s: %v", entry, err)
		case len(kept) == 1:
			listed++
			if r := kept[0].Rule; r != ruleRuntime && r != ruleLauncher && r != ruleSetting {
				t.Errorf("%s: kept by %q at the clean level", entry, r)
			}
		case len(dropped) != 1 || !strings.HasPrefix(dropped[0].Rule, "not on the allowlist"):
			t.Errorf("%s: dropped %v at the clean level, want it not on the allowlist", entry, dropped)
		}
	}
	if len(harmlessEntries) < 100 || listed < 15 || listed > 25 {
		t.Errorf("%d rows, %d of them listed", len(harmlessEntries), listed)
	}
}

func TestClean(t *testing.T) {
	const no = "not on the allowlist"
	tests := []struct {
		environ string // joined by "; "
		allow   string // joined by a space
		want    string // "NAME=VALUE (rule)" or "-NAME (rule)", joined by "; "
	}{
		{"PATH=/bin; HOME=/home/u; TMPDIR=/tmp; PWD=/src; XDG_CACHE_HOME=/c; USER=u; FOO=1", "",
			"PATH=/bin (system runtime); USER=u (system runtime); -HOME (" + no + "); -TMPDIR (" + no + "); -PWD (" + no +
				"); -XDG_CACHE_HOME (" + no + "); -FOO (" + no + ")"},
		{"LOGNAME=u; LANG=C; LANGUAGE=de; LC_TIME=C; TZ=UTC; TERM=vt100; COLORTERM=; NO_COLOR=; FORCE_COLOR=1; CLICOLOR=1; LINES=2", "",
			"LOGNAME=u (system runtime); LANG=C (system runtime); LANGUAGE=de (system runtime); LC_TIME=C (system runtime); TZ=UTC (system runtime); " +
				"TERM=vt100 (system runtime); COLORTERM= (system runtime); NO_COLOR= (system runtime); FORCE_COLOR=1 (system runtime); " +
				"CLICOLOR=1 (system runtime); LINES=2 (system runtime)"},
		{"path=/bin; PATHS=x; LCX=1; TERMINFO=/x; ; EMPTY=", "", "-path (" + no + "); -PATHS (" + no + "); -LCX (" + no + "); -TERMINFO (" + no +
			"); - (entry 5 is not NAME=VALUE); -EMPTY (" + no + ")"},
		{"SLURM_PROCID=3; OMPI_COMM_WORLD_RANK=0; PMIX_RANK=0; PMI_FD=7; HYDRA_X=1; PBS_JOBID=1; LSB_JOBID=1; FLUX_JOB_ID=1", "",
			"SLURM_PROCID=3 (launcher); OMPI_COMM_WORLD_RANK=0 (launcher); PMIX_RANK=0 (launcher); PMI_FD=7 (launcher); HYDRA_X=1 (launcher); " +
				"PBS_JOBID=1 (launcher); LSB_JOBID=1 (launcher); FLUX_JOB_ID=1 (launcher)"},
		{"SANDBOX_MODE=bwrap; HYPERLOOM_SANDBOX_ENV=A; X_SANDBOX_FOO=1; XSANDBOX_MODE=1; SANDBOX_=1; SANDBOX=1", "",
			"SANDBOX_MODE=bwrap (setting of a cage); HYPERLOOM_SANDBOX_ENV=A (setting of a cage); -X_SANDBOX_FOO (" + no + "); -XSANDBOX_MODE (" + no +
				"); -SANDBOX_ (" + no + "); -SANDBOX (" + no + ")"},
		{"X_SANDBOX_SECRET=PATH; Y_SANDBOX_SECRET=hunter2; PATH=/bin", "", "X_SANDBOX_SECRET=PATH (setting of a cage); PATH=/bin (system runtime); " +
			"-Y_SANDBOX_SECRET (secret shape: ends in _SECRET)"},
		// by name
		{"FOO=1; BAR=2; EMPTY=", "FOO EMPTY UNSET", "FOO=1 (--env); EMPTY= (--env); -BAR (" + no + ")"},
		{"PATH=/bin; PMI_RANK=1", "PATH PMI_RANK", "PATH=/bin (system runtime); PMI_RANK=1 (launcher)"},
		{"HTTPS_PROXY=http://p:1; NO_PROXY=h; SSL_CERT_DIR=/gone:/tmp", "HTTPS_PROXY SSL_CERT_DIR",
			"HTTPS_PROXY=http://p:1 (--env); SSL_CERT_DIR=/gone:/tmp (--env); -NO_PROXY (" + no + ")"},
		{"LD_LIBRARY_PATH=/l; PYTHONPATH=/p; NODE_OPTIONS=x; BASH_ENV=/b; GIT_SSH=x; GOFLAGS=x; DYLD_X=1; BASH_FUNC_f%%=() { :;}", "LD_LIBRARY_PATH",
			"LD_LIBRARY_PATH=/l (--env); -PYTHONPATH (" + no + ": changes what programs execute); -NODE_OPTIONS (" + no +
				": changes what programs execute); -BASH_ENV (" + no + ": changes what programs execute); -GIT_SSH (" + no +
				": changes what programs execute); -GOFLAGS (" + no + ": changes what programs execute); -DYLD_X (" + no +
				": changes what programs execute); -BASH_FUNC_f%% (" + no + ": changes what programs execute)"},
		{"AWS_REGION=x; AWS_PROFILE=y; VAULT_ADDR=v; npm_config_registry=r; GITHUB=1; ARM_TENANT_ID=0", "AWS_REGION",
			"AWS_REGION=x (--env); -AWS_PROFILE (" + no + ": may hold a credential of AWS); -VAULT_ADDR (" + no +
				": may hold a credential of VAULT); -npm_config_registry (" + no + ": may hold a credential of NPM); -GITHUB (" + no +
				"); -ARM_TENANT_ID (" + no + ": may hold a credential of ARM)"},
		{"LEMONADE_HOST=h; lemonade_x=1; LEMONADE_OFF=; LEMONADE_SANDBOX_MODE=bwrap; LEMONADE=1", "",
			"LEMONADE_SANDBOX_MODE=bwrap (setting of a cage); -LEMONADE_HOST (secret name: all of LEMONADE_); " +
				"-lemonade_x (secret name: all of LEMONADE_); -LEMONADE_OFF (" + no + "); -LEMONADE (" + no + ")"},
		// what is not visible, though allowed
		{"DISPLAY=:0; TMPDIR=/gone; SSH_AUTH_SOCK=/gone; SSH_AGENT_PID=7", "DISPLAY TMPDIR SSH_AUTH_SOCK SSH_AGENT_PID",
			"-DISPLAY (names a socket that is not visible); -TMPDIR (names a directory that is not visible); " +
				"-SSH_AUTH_SOCK (names a socket that is not visible); -SSH_AGENT_PID (belongs to SSH_AUTH_SOCK, which is not visible)"},
		{"DISPLAY=:7; TMPDIR=/tmp; SSH_AUTH_SOCK=/run/visible.sock; SSH_AGENT_PID=7", "DISPLAY TMPDIR SSH_AUTH_SOCK SSH_AGENT_PID",
			"DISPLAY=:7 (--env); TMPDIR=/tmp (--env); SSH_AUTH_SOCK=/run/visible.sock (--env); SSH_AGENT_PID=7 (--env)"},
		{"KUBECONFIG=/gone; GOOGLE_APPLICATION_CREDENTIALS=/work/sa.json; KEY_FILE=/home/u/.ssh/id", "KUBECONFIG GOOGLE_APPLICATION_CREDENTIALS KEY_FILE",
			"GOOGLE_APPLICATION_CREDENTIALS=/work/sa.json (--env); -KUBECONFIG (names a file with credentials that is not visible); " +
				"-KEY_FILE (names a file with credentials)"},
		{"SSL_CERT_FILE=/gone; SSL_CERT_DIR=/a:/b; REQUESTS_CA_BUNDLE=/tmp; SHELL=/gone", "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE",
			"REQUESTS_CA_BUNDLE=/tmp (--env); -SSL_CERT_FILE (names a certificate file that is not visible); " +
				"-SSL_CERT_DIR (names a certificate directory that is not visible); -SHELL (names a program that is not visible)"},
		{"SHELL=/tmp", "", "SHELL=/tmp (system runtime)"},
		{"LD_PRELOAD=/gone.so:/usr/lib/libfaketime.so; LD_AUDIT=/gone.so", "LD_PRELOAD LD_AUDIT",
			"LD_PRELOAD=/usr/lib/libfaketime.so (--env, without the entries that are not visible); -LD_AUDIT (names a library that is not visible)"},
		// git's set
		{"GIT_CONFIG_COUNT=1; GIT_CONFIG_KEY_0=user.name; GIT_CONFIG_VALUE_0=A", "GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0",
			"GIT_CONFIG_COUNT=1 (--env); GIT_CONFIG_KEY_0=user.name (--env); GIT_CONFIG_VALUE_0=A (--env)"},
		{"GIT_CONFIG_COUNT=1; GIT_CONFIG_KEY_0=user.name; GIT_CONFIG_VALUE_0=A", "GIT_CONFIG_COUNT GIT_CONFIG_VALUE_0",
			"-GIT_CONFIG_KEY_0 (" + no + ": changes what programs execute); -GIT_CONFIG_COUNT (belongs to a set of which a variable is dropped); " +
				"-GIT_CONFIG_VALUE_0 (belongs to a set of which a variable is dropped)"},
	}
	for _, tt := range tests {
		kept, dropped, err := Scrub(strings.Split(tt.environ, "; "), Rules{Clean: true, Allow: strings.Fields(tt.allow), Visible: inside})
		if err != nil {
			t.Errorf("%s: %v", tt.environ, err)
			continue
		}
		var got []string
		for _, v := range kept {
			got = append(got, v.Name+"="+v.Value+" ("+v.Rule+")")
		}
		for _, v := range dropped {
			got = append(got, "-"+v.Name+" ("+v.Rule+")")
		}
		if got := strings.Join(got, "; "); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.environ, got, tt.want)
		}
	}
}

// A value with a line end in it could carry another variable past whoever reads the environment line by line. By name it passes.
func TestCleanDropsControl(t *testing.T) {
	const rule = "its value has a control character, as no system runtime's has"
	for _, name := range []string{"TERM", "PATH", "USER", "LANG", "LC_ALL", "COLORTERM", "TZ"} {
		for _, value := range []string{"xterm\nTOKEN=hunter2", "a\rb", "\x1b[2J", "a\x7f", "\u0085"} {
			kept, dropped, err := Scrub([]string{name + "=" + value}, Rules{Clean: true})
			if err != nil || len(kept) != 0 || len(dropped) != 1 || dropped[0] != (Dropped{name, rule}) {
				t.Errorf("%s=%q: kept %v, dropped %v, %v", name, value, kept, dropped, err)
			}
			kept, _, err = Scrub([]string{name + "=" + value}, Rules{Clean: true, Allow: []string{name}, Visible: inside})
			if err != nil || len(kept) != 1 || kept[0].Rule != "--env" {
				t.Errorf("%s=%q by name: kept %v, %v", name, value, kept, err)
			}
			if kept, _, err = Scrub([]string{name + "=" + value}, Rules{}); err != nil || len(kept) != 1 {
				t.Errorf("%s=%q scrubbed: kept %v, %v", name, value, kept, err)
			}
		}
	}
	if kept, _, err := Scrub([]string{"LANG=d\u00e9_\xff"}, Rules{Clean: true}); err != nil || len(kept) != 1 {
		t.Errorf("what is no ASCII is no control character: %v, %v", kept, err)
	}
}

// Seeds R18 and R36: a namespace that no allowlist opens, set or not: only the one who runs it may, with --secret.
func TestCleanRefusesLemonade(t *testing.T) {
	for _, name := range []string{"LEMONADE_HOST", "LEMONADE_UNSET", "lemonade_host"} {
		environ := []string{"LEMONADE_HOST=hunter2", "lemonade_host=hunter2"}
		_, _, err := Scrub(environ, Rules{Clean: true, Allow: []string{name}})
		if want := "cannot let a secret through, " + name + ", secret name: all of LEMONADE_"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	kept, _, err := Scrub([]string{"LEMONADE_HOST=h"}, Rules{Clean: true, Secret: []string{"LEMONADE_HOST"}})
	if err != nil || len(kept) != 1 || kept[0] != (Kept{"LEMONADE_HOST", "h", "--secret"}) {
		t.Errorf("by --secret: kept %v, %v", kept, err)
	}
	kept, _, err = Scrub([]string{"LEMONADE_HOST=h"}, Rules{Allow: []string{"LEMONADE_HOST"}})
	if err != nil || len(kept) != 1 {
		t.Errorf("scrubbed: kept %v, %v", kept, err)
	}
}

// A key of git's set can be the secret: insteadOf holds a URL.
func TestGitConfigKeyWithSecret(t *testing.T) {
	kept, dropped, err := Scrub([]string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.https://u:hunter2@h/.insteadOf", "GIT_CONFIG_VALUE_0=https://h/"}, Rules{})
	if err != nil || len(kept) != 0 || len(dropped) != 3 {
		t.Errorf("kept %v, dropped %v, %v", kept, dropped, err)
	}
}

// FuzzClean: what the clean level keeps, the scrubbed level keeps; what it does not, it accounts for; a second time
// changes nothing; no allowlist lets a secret through; no text holds a value.
func FuzzClean(f *testing.F) {
	f.Add(strings.Join(secretEntries, "\x00"), "", "")
	f.Add(strings.Join(harmlessEntries, "\x00"), "LD_PRELOAD", "")
	for _, entry := range secretEntries {
		f.Add(entry, nameOf(entry), "")
	}
	for _, entry := range harmlessEntries {
		f.Add(entry+"\x00PATH=/bin", nameOf(entry), "PATH")
	}
	f.Add("LD_PRELOAD=/gone:/x x:$LIB\x00LD_AUDIT= \x00SHELL=/\x00DISPLAY=:0\x00LEMONADE_X=1", "LD_PRELOAD", "LEMONADE_X")
	f.Add("GIT_CONFIG_COUNT=1\x00GIT_CONFIG_KEY_0=a\x00GIT_CONFIG_VALUE_0=b\x00X_SANDBOX_SECRET=A\x00A=", "GIT_CONFIG_KEY_0", "A")
	f.Add("APP_CREDENTIALS=/gone\x00WAYLAND_DISPLAY=w\x00XDG_RUNTIME_DIR=/r\x00=\x00junk", "APP_CREDENTIALS", "")
	f.Fuzz(func(t *testing.T, joined, allow, secret string) {
		environ := strings.Split(joined, "\x00")
		rules := Rules{Allow: []string{allow}, Secret: []string{secret}, Visible: inside}
		all, allDropped, scrubErr := Scrub(environ, rules)
		rules.Clean = true
		kept, dropped, err := Scrub(environ, rules)
		checkNoValue(t, environ, dropped, err)
		checkNoValue(t, environ, allDropped, scrubErr)
		if err != nil {
			if kept != nil || dropped != nil {
				t.Fatalf("%v with %v and %v", err, kept, dropped)
			}
			return
		}
		if scrubErr != nil {
			t.Fatalf("the scrubbed level refuses what the clean one does not: %v", scrubErr)
		}
		if len(kept)+len(dropped) != len(all)+len(allDropped) {
			t.Errorf("%d kept and %d dropped, but %d and %d at the scrubbed level", len(kept), len(dropped), len(all), len(allDropped))
		}
		scrubbed := map[string]string{}
		for _, k := range all {
			scrubbed[k.Name] = k.Value
		}
		partly := func(k Kept) bool { return strings.HasSuffix(k.Rule, rulePartly) }
		listing := func(k Kept) bool { return strings.HasSuffix(k.Name, "SANDBOX_SECRET") }
		for _, k := range kept {
			if value, ok := scrubbed[k.Name]; !ok || value != k.Value && !partly(k) {
				t.Errorf("%q=%q by %q, but %q, %v at the scrubbed level", k.Name, k.Value, k.Rule, value, ok)
			}
			byName := k.Rule == ruleRuntime || k.Rule == ruleLauncher || k.Rule == ruleSetting
			switch {
			case k.Rule == ruleSecret && k.Name == secret:
			case !byName && k.Name != allow:
				t.Errorf("%q by %q, which nobody allowed", k.Name, k.Rule)
			case k.Value != "" && !partly(k) && (secretValue(k.Value) != "" || !listing(k) && secretName(k.Name, k.Value) != ""):
				t.Errorf("a secret passes by %q: %q=%q", k.Rule, k.Name, k.Value)
			}
		}
		again(t, kept, rules, func(k Kept) bool { return partly(k) || listing(k) })
		rules.Clean = false
		again(t, all, rules, func(k Kept) bool { return partly(k) || listing(k) })
	})
}

// again scrubs what was kept. What loosely reports may differ: a preload joined anew, and a list of names of which some
// are gone.
func again(t *testing.T, kept []Kept, rules Rules, loosely func(Kept) bool) {
	t.Helper()
	var environ, allowed []string
	for _, k := range kept {
		environ = append(environ, k.Name+"="+k.Value)
		if contains(rules.Allow, k.Name) {
			allowed = append(allowed, k.Name) // one that was dropped is unset now, and judged by its name alone
		}
		if loosely(k) && contains(rules.Allow, k.Name) {
			return
		}
	}
	rules.Allow = allowed
	if name := rules.Secret[0]; len(environ) == 0 || !strings.Contains("\x00"+strings.Join(environ, "\x00"), "\x00"+name+"=") {
		rules.Secret = nil // it went with git's set
	}
	twice, _, err := Scrub(environ, rules)
	if err != nil {
		t.Errorf("%q, scrubbed once: %v", environ, err)
	}
	values := map[string]string{}
	for _, k := range twice {
		values[k.Name] = k.Value
	}
	for _, k := range kept {
		if value, ok := values[k.Name]; !loosely(k) && (!ok || value != k.Value) {
			t.Errorf("%q=%q by %q is %q, %v the second time", k.Name, k.Value, k.Rule, value, ok)
		}
	}
}

// Seeds R17, R19 and H22: what was scrubbed is scrubbed. A second time with the same rules keeps all of it and drops
// nothing, at both levels, whatever stands beside what.
func TestScrubTwice(t *testing.T) {
	all := append(append([]string{
		"LD_PRELOAD=/gone.so:libfaketime.so", "TMPDIR=/gone", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c",
		"DISPLAY=:0", "XDG_RUNTIME_DIR=/run/user/7", "WAYLAND_DISPLAY=wayland-0", "SSH_AUTH_SOCK=/tmp/x", "EMPTY=", "_=/usr/bin/env",
	}, secretEntries...), harmlessEntries...)
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 5))
		var environ []string
		for range r.IntN(40) {
			environ = append(environ, all[r.IntN(len(all))])
		}
		for _, clean := range []bool{false, true} {
			rules := Rules{Clean: clean, Visible: inside}
			if len(environ) > 0 && clean {
				rules.Secret = []string{nameOf(environ[0])}
			}
			once, _, err := Scrub(environ, rules)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			var kept []string
			for _, k := range once {
				kept = append(kept, k.Name+"="+k.Value)
			}
			if rules.Secret != nil && !slices.ContainsFunc(once, func(k Kept) bool { return k.Name == rules.Secret[0] }) {
				rules.Secret = nil // git's set went as a whole
			}
			twice, dropped, err := Scrub(kept, rules)
			var again []string
			for _, k := range twice {
				again = append(again, k.Name+"="+k.Value)
			}
			if err != nil || len(dropped) > 0 || !slices.Equal(kept, again) {
				t.Fatalf("seed %d, clean %v: %q, then %q, dropped %v, %v", seed, clean, kept, again, dropped, err)
			}
		}
	}
	if n := len(secretEntries) + len(harmlessEntries); n < 200 {
		t.Errorf("only %d names in the two tables", n)
	}
}

// Seeds R17, R18, R20 and RFC section 8: what a live download needs passes by name and never by itself; a loader's or an
// interpreter's variable is named, too; a secret is refused although it is named, with the reason.
func TestAllowlist(t *testing.T) {
	for _, entry := range []string{"HTTP_PROXY=http://proxy:3128", "HTTPS_PROXY=http://proxy:3128", "NO_PROXY=localhost", "SSL_CERT_FILE=/work/tmp",
		"SSL_CERT_DIR=/work/tmp", "HF_HOME=/src/hf", "LD_LIBRARY_PATH=/src/lib", "PYTHONPATH=/src", "PYTHONSTARTUP=/src/x.py"} {
		name := nameOf(entry)
		kept, dropped, err := Scrub([]string{entry}, Rules{Clean: true, Visible: inside})
		if err != nil || len(kept) != 0 || len(dropped) != 1 || !strings.HasPrefix(dropped[0].Rule, "not on the allowlist") {
			t.Errorf("%s by itself: %v %v %v", name, kept, dropped, err)
		}
		kept, dropped, err = Scrub([]string{entry}, Rules{Clean: true, Allow: []string{name}, Visible: inside})
		if err != nil || len(dropped) != 0 || len(kept) != 1 || kept[0].Rule != "--env" {
			t.Errorf("%s by name: %v %v %v", name, kept, dropped, err)
		}
	}
	for _, entry := range []string{"AWS_SECRET_ACCESS_KEY=hunter2", "GITHUB_TOKEN=hunter2", "GITLAB_TOKEN=hunter2", "AZURE_CLIENT_SECRET=hunter2",
		"HF_TOKEN=hunter2", "MY_APP_PASSWORD=hunter2", "LEMONADE_API_KEY=hunter2", "LEMONADE_ANYTHING=hunter2", "HTTPS_PROXY=http://u:hunter2@proxy:1"} {
		for _, clean := range []bool{false, true} {
			if !clean && strings.HasSuffix(nameOf(entry), "ANYTHING") {
				continue
			}
			_, _, err := Scrub([]string{entry}, Rules{Clean: clean, Allow: []string{nameOf(entry)}, Visible: inside})
			var r *refusal.Error
			if !errors.As(err, &r) || r.Cause == "" || r.Object != nameOf(entry) || strings.Contains(r.Error()+r.Hint, "hunter2") {
				t.Errorf("%s, clean %v: %v", nameOf(entry), clean, err)
			}
		}
	}
}

// checkNoValue looks for values longer than what our own words could repeat by chance, and no part of a name.
func checkNoValue(t *testing.T, environ []string, dropped []Dropped, err error) {
	t.Helper()
	var text strings.Builder
	if err != nil {
		var refused *refusal.Error
		if !errors.As(err, &refused) {
			t.Fatalf("%v is no refusal", err)
		}
		text.WriteString(refused.What + "\n" + refused.Cause)
	}
	for _, d := range dropped {
		text.WriteString("\n" + d.Rule)
	}
	for _, entry := range environ {
		if _, value, _ := strings.Cut(entry, "="); len(value) > 64 && strings.Contains(text.String(), value) {
			t.Errorf("%q shows the value %q", text.String(), value)
		}
	}
}
