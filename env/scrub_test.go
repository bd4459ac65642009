package env

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selfcage/selfcage/internal/refusal"
)

// inside is what the tests' cage shows.
func inside(path string) bool {
	switch path {
	case "/tmp", "/usr/lib/libfaketime.so", "/run/visible.sock", "/tmp/.X11-unix/X7", "/run/user/1/wayland-1", "/work/tmp",
		"/work/kubeconfig", "/work/sa.json", "/work/.ssh-agent", "/run/a;b":
		return true
	}
	return false
}

// Random enough to look like the real thing. None was ever valid.
const (
	a36     = "abcdEFGH1234ijklMNOP5678qrstUVWX9012"
	testJWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ0ZXN0In0.c2lnbmF0dXJl"
)

// Case 65 of the public bug reports, "scrubbing both misses secrets and removes harmless variables", is in both tables.

func TestKeeps(t *testing.T) {
	tests := []string{
		// case 65
		"TOKENIZERS_PARALLELISM=false", "LANG=C.UTF-8", "TERM=xterm-256color", "COLORTERM=truecolor", "KEYBOARD=us",
		"MONKEY_X=1", "GIT_AUTHOR_NAME=A U Thor", "GIT_AUTHOR_EMAIL=a@b.c", "BASH_FUNC_f%%=() {  echo hi; }",
		"A NAME=with a space", "BASH_FUNC_get_token%%=() {  cat; }", "DATABASE_URL=postgres://u@h/d",
		// the usual
		"PATH=/usr/bin:/bin", "HOME=/home/u", "PWD=/src", "OLDPWD=/home/u", "SHELL=/bin/bash", "USER=u", "LOGNAME=u", "TZ=UTC",
		"LC_ALL=C", "LS_COLORS=di=01;34:*.tar=01;31", "PS1=\\u@\\h:\\w\\$ ", "EDITOR=vi", "PAGER=less", "_=/usr/bin/env", "SHLVL=1",
		"MAIL=/var/mail/u", "CI=true", "EMPTY=", "GITHUB_TOKEN=", "MYSQL_PWD=", "TMPDIR=/tmp", "TMP=/work/tmp", "TEMP=relative",
		// sessions and terminals
		"SSH_CLIENT=10.0.0.1 5 22", "SSH_CONNECTION=10.0.0.1 5 10.0.0.2 22", "SSH_TTY=/dev/pts/1", "XDG_SESSION_ID=3",
		"XDG_SESSION_TYPE=wayland", "DESKTOP_SESSION=gnome", "GDMSESSION=ubuntu", "BYOBU_SESSION=main", "TERM_SESSION_ID=w0t0p0",
		"XDG_CURRENT_DESKTOP=GNOME", "TMUX=/run/visible.sock,1,0", "GPG_TTY=/dev/pts/1", "SESSION=work", "INVOCATION_ID=0a1b2c",
		// execution and families: clean mode's business
		"LD_LIBRARY_PATH=/opt/rocm/lib:/usr/lib", "PYTHONPATH=/src", "GIT_DIR=/src/.git", "GIT_SSH_COMMAND=ssh -v", "GOFLAGS=-mod=mod",
		"GOAUTH=netrc", "GOPRIVATE=example.com", "NODE_OPTIONS=--max-old-space-size=4096", "GITHUB_OUTPUT=/home/r/out", "GITHUB_SHA=abc",
		"GITHUB_ACTIONS=true", "AWS_REGION=eu-west-1", "AWS_PROFILE=dev", "HF_HOME=/models", "HF_HUB_OFFLINE=1",
		"OPENAI_BASE_URL=http://localhost:8000/v1", "VAULT_ADDR=https://vault:8200", "GIT_ASKPASS=/usr/bin/askpass",
		"SSH_ASKPASS=/usr/bin/ssh-askpass", "BORG_PASSCOMMAND=pass borg", "RESTIC_PASSWORD_COMMAND=pass restic",
		// words that only look like a secret's
		"KEY=a", "SORT_KEY=name", "HOTKEY=ctrl", "PUBLIC_KEY=ssh-ed25519 AAAA", "SSH_PUBLIC_KEY=x", "CACHE_KEY=v1", "PRIMARY_KEY=id",
		"PARTITION_KEY=day", "STRIPE_PUBLISHABLE_KEY=pk_test_1", "GPG_KEY=A035C8C19219BA821ECEA86B64E628F8D684696D", "FAPI_KEYBOARD=us",
		"MAX_TOKENS=4096", "TOKEN_COUNT=7", "TOKEN_LIMIT=9", "MAX_TOKEN=512", "EOS_TOKEN=</s>", "PAD_TOKEN=<pad>", "TOKENIZER=bpe",
		"COST_PER_TOKEN=0.1", "SECRETARY=Bob", "PASSWORD_STORE_DIR=/home/u/.password-store", "PASSPORT=1", "COMPASS=north", "BYPASS=x",
		"RENDER_PASS=shadow", "FIRST_PASS=a", "COOKIE_NAME=sid", "COOKIECUTTER_CONFIG=/src/cc.yaml", "AUTHOR=me", "AUTH=basic",
		"PGHOST=db", "PGUSER=u", "DB_AUTH=trust", "MONGO_AUTH=mtls", "POSTGRES_HOST_AUTH_METHOD=trust", "API_KEY_HEADER=X-Api-Key",
		"API_KEY_NAME=main", "PRIVATE_KEY_PATH=/src/testdata/key", "AUTH_TOKEN_URL=https://id/token", "ACCESS_TOKEN_TTL=3600",
		"ACTIONS_ID_TOKEN_REQUEST_URL=https://x/y", "CREDENTIAL_HELPER=store", "FILE_PAT=*.c", "MATCH_PAT=^a.*$", "BUILD_PWD=/src",
		"PATH_PATTERN=x", "KEYRING=a", "GNOME_KEYRING_PID=1", "PATCH=1", "PATIENCE=1", "SPAT=x", "TOKENS=a b", "PASS=2",
		// a switch is no secret
		"HF_HUB_DISABLE_IMPLICIT_TOKEN=1", "USE_AUTH_TOKEN=true", "REQUIRE_AUTH=no", "CORS_ALLOW_CREDENTIALS=True", "NO_PASSWORD=1",
		"GENERATE_SECRETS=off", "DISABLE_COOKIE=yes",
		// values that only look like a secret
		"PROXY_A=http://proxy:3128", "HTTPS_PROXY=http://u@proxy:3128", "EMPTY_PASSWORD_URL=http://u:@h", "MASKED=http://u:***@h",
		"TEMPLATE=http://u:${PASS}@h/", "DOC=http://user:<password>@h", "REMOTE=git@github.com:o/r.git", "REMOTE2=ssh://git@h:22/r",
		"V6=http://[::1]:80/@a:b", "SCOPED=https://h:80/@scope/p:1", "CERT=-----BEGIN CERTIFICATE-----", "TWO=tcp://h:1,tcp://u@h:2",
		"PUB=-----BEGIN PUBLIC KEY-----", "MODEL=hf_transformers", "LIB=sk-learn-contrib-some-package-name", "RISK=/data/task-risk-1",
		"LONGWORD=hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "NPMREG=npm_config_registry", "AK=AKIA", "AK2=AKIAabcdefghijklmnop",
		"AK3=AKIAABCDEFGHIJKLMNOPQ", "INWORD=xghp_" + a36, "EY=eyJhbGciOiJIUzI1NiJ9", "EY2=eyJhbGci.eyJz", "XOX=xoxb-1", "SCHEME=://u:p@h",
		"AUTHZ=authorization: none", "MYSQL_DSN=root@tcp(127.0.0.1:3306)/db", "SHA=sha256:" + strings.Repeat("0a", 32),
		// launchers
		"SLURM_JOB_ID=1", "OMPI_COMM_WORLD_RANK=0", "PMIX_RANK=0", "PMI_RANK=0", "PBS_JOBCOOKIE=0A", "LSB_JOBID=1", "FLUX_URI=local:///x",
		// names something that is visible, or something that cannot be judged
		"SSH_AUTH_SOCK=/run/visible.sock", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/visible.sock,guid=1",
		"DBUS_SYSTEM_BUS_ADDRESS=unix:path=/gone;unix:path=/run/visible.sock", "DBUS_STARTER_ADDRESS=unix:abstract=/tmp/dbus-1",
		"AT_SPI_BUS_ADDRESS=unix:path=/run/a%3bb", "DISPLAY=:7.0", "DOCKER_HOST=tcp://10.0.0.1:2375", "CONTAINER_HOST=unix:///run/visible.sock",
		"PULSE_SERVER=tcp:h", "LD_PRELOAD=libfaketime.so", "LD_AUDIT=/usr/lib/libfaketime.so", "KUBECONFIG=/gone:/work/kubeconfig",
		"GOOGLE_APPLICATION_CREDENTIALS=/work/sa.json", "LOG_FILE=/var/log/gone", "MY_SOCKET=/tmp/mine.sock", "NVIM=relative",
		"MANPATH=/home/u/.ssh", "SEARCH_PATH=/a:/home/u/.ssh", "KITTY_LISTEN_ON=unix:@kitty", "NOTIFY_SOCKET=@/org/x",
	}
	for _, entry := range tests {
		t.Run(entry[:min(len(entry), 40)], func(t *testing.T) {
			kept, dropped, err := Scrub([]string{entry}, Rules{Visible: inside})
			if err != nil || len(dropped) != 0 || len(kept) != 1 || kept[0].Name+"="+kept[0].Value != entry {
				t.Errorf("kept %v, dropped %v, %v; want it kept as it is", kept, dropped, err)
			}
		})
	}
	if len(tests) < 100 {
		t.Errorf("only %d rows", len(tests))
	}
}

func TestDrops(t *testing.T) {
	tests := []struct{ entry, rule string }{
		// case 65
		{"MYSQL_PWD=hunter2", "secret name"}, {"REDISCLI_AUTH=hunter2", "secret name"}, {"PGPASSWORD=hunter2", "secret name"},
		{"DATABASE_URL=postgres://u:p@h/d", "value looks like a URL with a password"},
		{"HTTPS_PROXY=http://u:p@h:1", "value looks like a URL with a password"},
		{"AWS_SESSION_TOKEN=abc", "secret shape: ends in _TOKEN"}, {"GITHUB_TOKEN=abc", "secret shape: ends in _TOKEN"},
		{"NPM_CONFIG__AUTH=abc", "secret name"}, {"SANDBOX_OWN_TOKEN=abc", "secret shape: ends in _TOKEN"},
		{"LD_PRELOAD=/nonexistent.so", "names a library that is not visible"},
		// exact names
		{"npm_config__auth=abc", "secret name"}, {"DOCKER_AUTH_CONFIG={}", "secret name"}, {"SSHPASS=x", "secret name"},
		{"BW_SESSION=x", "secret name"}, {"OP_SESSION_my=x", "secret name"}, {"TF_TOKEN_app_terraform_io=x", "secret name"},
		{"AWS_ACCESS_KEY_ID=x", "secret name"}, {"SLURM_JWT=x", "secret name"}, {"COMPOSER_AUTH={}", "secret name"},
		{"SOPS_AGE_KEY=x", "secret name"}, {"RCLONE_CONFIG_PASS=x", "secret name"}, {"CI_JOB_JWT=x", "secret name"},
		{"POETRY_PYPI_TOKEN_PYPI=x", "secret name"}, {"DD_APP_KEY=x", "secret name"}, {"DBPASS=x", "secret name"},
		{"BUNDLE_GITHUB__COM=x", "secret name"}, {"IDENTITY_HEADER=x", "secret name"}, {"MYSQL_PWD=1", "secret name"},
		{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=/v2/x", "secret name"}, {"DATADOG_APP_KEY=x", "secret name"},
		// shapes: the last word
		{"TOKEN=x", "secret shape: TOKEN"}, {"token=x", "secret shape: TOKEN"}, {"SECRET=x", "secret shape: SECRET"},
		{"PASSWORD=x", "secret shape: PASSWORD"}, {"HF_TOKEN=x", "secret shape: ends in _TOKEN"},
		{"HUGGING_FACE_HUB_TOKEN=x", "secret shape: ends in _TOKEN"}, {"CI_JOB_TOKEN=x", "secret shape: ends in _TOKEN"},
		{"AWS_SECRET=x", "secret shape: ends in _SECRET"}, {"DB_PASSWORD=x", "secret shape: ends in _PASSWORD"},
		{"DB_PASSWD=x", "secret shape: ends in _PASSWD"}, {"BORG_PASSPHRASE=x", "secret shape: ends in _PASSPHRASE"},
		{"DB_PWD=/x", "secret shape: ends in _PWD"}, {"MY_PWD=x", "secret shape: ends in _PWD"}, {"DB_PASS=x", "secret shape: ends in _PASS"},
		{"SMTP_PASS=x", "secret shape: ends in _PASS"}, {"APP_CREDENTIALS={}", "secret shape: ends in _CREDENTIALS"},
		{"APP_CREDENTIAL=x", "secret shape: ends in _CREDENTIAL"}, {"GOOGLE_APIKEY=x", "secret shape: ends in _APIKEY"},
		{"XDG_SESSION_COOKIE=x", "secret shape: ends in _COOKIE"}, {"SESSION_TOKEN=x", "secret shape: ends in _TOKEN"},
		{"SESSIONTOKEN=x", "secret shape: ends in TOKEN"}, {"AUTH_SESSION=x", "secret shape: ends in _SESSION"},
		{"LOGIN_SESSION=x", "secret shape: ends in _SESSION"}, {"GITHUB_PAT=x", "secret shape: ends in _PAT"},
		{"AZURE_DEVOPS_EXT_PAT=x", "secret shape: ends in _PAT"}, {"HTTP_AUTH=u:p", "secret shape: ends in _AUTH"},
		{"APP_SECRETS=x", "secret shape: ends in _SECRETS"}, {"OAUTH2_SECRET=x", "secret shape: ends in _SECRET"},
		{"my-token=x", "secret shape: ends in _TOKEN"}, {"spring.datasource.password=x", "secret shape: ends in _PASSWORD"},
		{"TF_VAR_db_password=x", "secret shape: ends in _PASSWORD"}, {"UV_INDEX_X_PASSWORD=x", "secret shape: ends in _PASSWORD"},
		{"DEPLOY_TOKEN_2=x", "secret shape: ends in _TOKEN"}, {"API_TOKEN1=x", "secret shape: ends in _TOKEN"},
		{"VNC_PASSWORD_B64=x", "secret shape: ends in _PASSWORD"}, {"ACTIONS_RUNTIME_TOKEN=x", "secret shape: ends in _TOKEN"},
		{"PBS_PASSWORD=x", "secret shape: ends in _PASSWORD"}, {"HYDRA_SYSTEM_SECRET=x", "secret shape: ends in _SECRET"},
		// shapes: written together
		{"SUDOPASSWORD=x", "secret shape: ends in PASSWORD"}, {"NGROK_AUTHTOKEN=x", "secret shape: ends in TOKEN"},
		{"TS_AUTHKEY=x", "secret shape: ends in _AUTHKEY"}, {"authToken=x", "secret shape: ends in TOKEN"},
		{"openaiApiKey=x", "secret shape: ends in APIKEY"}, {"MYSECRET=x", "secret shape: ends in SECRET"},
		{"npm_config_//registry.npmjs.org/:_authToken=x", "secret shape: ends in TOKEN"},
		// shapes: keys, and two words anywhere
		{"OPENAI_API_KEY=x", "secret shape: ends in _KEY"}, {"OPENAI_KEY=x", "secret shape: ends in _KEY"},
		{"AZURE_STORAGE_KEY=x", "secret shape: ends in _KEY"}, {"RAILS_MASTER_KEY=x", "secret shape: ends in _KEY"},
		{"AIRFLOW__CORE__FERNET_KEY=x", "secret shape: ends in _KEY"}, {"KAGGLE_KEY=x", "secret shape: ends in _KEY"},
		{"AWS_SECRET_ACCESS_KEY=/x", "secret shape: ends in _KEY"}, {"FLUX_API_KEY=x", "secret shape: ends in _KEY"},
		{"SECRET_KEY_BASE=x", "secret shape: contains SECRET_KEY"}, {"ALIBABA_CLOUD_ACCESS_KEY_ID=x", "secret shape: contains ACCESS_KEY"},
		{"OPENAI_API_KEYS=a,b", "secret shape: contains API_KEYS"}, {"AUTH_TOKEN_PROD=x", "secret shape: contains AUTH_TOKEN"},
		{"PRIVATE_KEY_PEM=x", "secret shape: contains PRIVATE_KEY"}, {"CLIENT_SECRET_V=x", "secret shape: contains CLIENT_SECRET"},
		{"SIGNING_KEY_A=x", "secret shape: contains SIGNING_KEY"}, {"ENCRYPTION_KEY=x", "secret shape: ends in _KEY"},
		// values
		{"A=ghp_" + a36, "value looks like a GitHub token"}, {"A=gho_" + a36, "value looks like a GitHub token"},
		{"A=ghu_" + a36, "value looks like a GitHub token"}, {"A=ghs_" + a36, "value looks like a GitHub token"},
		{"A=ghr_" + a36, "value looks like a GitHub token"}, {"A=github_pat_" + a36, "value looks like a GitHub token"},
		{"A=https://x-access-token:ghs_" + a36 + "@github.com/o/r", "value looks like a URL with a password"},
		{"A=https://ghp_" + a36 + "@github.com/o/r", "value looks like a GitHub token"}, {"A=glpat-abcdefghijklmnopqrst", "value looks like a GitLab token"},
		{"A=hf_" + a36[:34], "value looks like a Hugging Face token"}, {"A=sk-" + a36, "value looks like an API key"},
		{"A=sk-ant-api03-" + a36, "value looks like an Anthropic key"}, {"A=sk-proj-" + a36, "value looks like an OpenAI key"},
		{"A=xoxb-123456789012-abc", "value looks like a Slack token"}, {"A=xoxp-1234567890", "value looks like a Slack token"},
		{"A=xoxa-1234567890", "value looks like a Slack token"}, {"A=xoxr-1234567890", "value looks like a Slack token"},
		{"A=AKIAABCDEFGHIJKLMNOP", "value looks like an AWS access key"}, {"A=id:ASIAABCDEFGHIJKLMNOP,", "value looks like an AWS access key"},
		{"A=-----BEGIN OPENSSH PRIVATE KEY-----\nx", "value looks like a private key"}, {"A=x\n-----BEGIN RSA PRIVATE KEY-----", "value looks like a private key"},
		{"A=-----BEGIN CERTIFICATE-----\nx\n-----BEGIN PRIVATE KEY-----", "value looks like a private key"},
		{"A=" + testJWT, "value looks like a JSON web token"}, {"A=Bearer " + testJWT, "value looks like a JSON web token"},
		{"A=AIza" + a36[:35], "value looks like a Google API key"}, {"A=npm_" + a36, "value looks like an npm token"},
		{"A={\"k\":\"npm_" + a36 + "\"}", "value looks like an npm token"}, {"REDIS_URL=redis://:p@h", "value looks like a URL with a password"},
		{"A=a http://h b https://u:p@h c", "value looks like a URL with a password"}, {"A=postgresql+psycopg2://u:p@ss@h/d", "value looks like a URL with a password"},
		{"MYSQL_DSN=root:pw@tcp(127.0.0.1:3306)/db", "value looks like a data source name with a password"},
		{"GIT_CONFIG_VALUE_0=AUTHORIZATION: basic eDp5enl6eXo=", "value looks like an authorization header"},
		{"OTEL_EXPORTER_OTLP_HEADERS=a=b,Authorization=Bearer%20abcdefgh1", "value looks like an authorization header"},
		{"SLACK_WEBHOOK_URL=https://hooks.slack.com/services/T0/B0/x", "value looks like a webhook with its key"},
		{"A=DefaultEndpointsProtocol=https;AccountKey=x", "value looks like a connection string with its key"},
		{"BASH_FUNC_f%%=() { curl -H ghp_" + a36 + "; }", "value looks like a GitHub token"}, {"SLURM_X=ghp_" + a36, "value looks like a GitHub token"},
		// names something that is not visible
		{"SSH_AUTH_SOCK=/tmp/ssh-x/agent.1", "names a socket that is not visible"}, {"GPG_AGENT_INFO=/run/gone:1:1", "names a socket that is not visible"},
		{"TMUX=/tmp/tmux-1/default,1,0", "names a socket that is not visible"},
		{"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1/bus", "names a socket that is not visible"},
		{"DBUS_SYSTEM_BUS_ADDRESS=unix:guid=1,path=/a;unix:path=/b;", "names a socket that is not visible"},
		{"DISPLAY=:0", "names a socket that is not visible"}, {"DISPLAY=:0.1", "names a socket that is not visible"},
		{"DISPLAY=unix:0", "names a socket that is not visible"}, {"DISPLAY=/private/tmp/x:0", "names a socket that is not visible"},
		{"WAYLAND_DISPLAY=/run/gone", "names a socket that is not visible"}, {"SESSION_MANAGER=local/h:@/tmp/.ICE-unix/1,unix/h:/tmp/.ICE-unix/1", "names a socket that is not visible"},
		{"GNOME_KEYRING_CONTROL=/run/user/1/keyring", "names a socket that is not visible"}, {"DOCKER_HOST=unix:///run/docker.sock", "names a socket that is not visible"},
		{"PULSE_SERVER=unix:/run/user/1/pulse/native", "names a socket that is not visible"}, {"PULSE_SERVER=/run/x", "names a socket that is not visible"},
		{"NOTIFY_SOCKET=/run/systemd/notify", "names a socket that is not visible"}, {"XAUTHORITY=/home/u/.Xauthority", "names a file with credentials that is not visible"},
		{"TMPDIR=/scratch/1", "names a directory that is not visible"}, {"TMP=/scratch/1", "names a directory that is not visible"},
		{"TEMP=/tmp/sub", "names a directory that is not visible"}, {"XDG_RUNTIME_DIR=/run/user/1", "names a directory that is not visible"},
		{"LD_PRELOAD=/a.so:/b.so", "names a library that is not visible"}, {"LD_AUDIT=/a.so", "names a library that is not visible"},
		{"KUBECONFIG=/home/u/.kube/config:/gone", "names a file with credentials that is not visible"},
		{"GOOGLE_APPLICATION_CREDENTIALS=/home/u/sa.json", "names a file with credentials that is not visible"},
		{"DOCKER_CONFIG=/home/u/.docker", "names a file with credentials that is not visible"},
		{"HF_TOKEN_PATH=/home/u/t", "names a file with credentials that is not visible"},
		{"GIT_KEY_PATH=/home/u/.ssh/id_ed25519", "names a file with credentials"}, {"AWS_CONFIG_FILE=/home/u/.aws/config", "names a file with credentials"},
		{"DB_PASSWORD_FILE=/run/secrets/db", "names a file with credentials"},
		// no variable
		{"ghp_" + a36, "entry 1 is not NAME=VALUE"}, {"=C:=C:\\x", "entry 1 is not NAME=VALUE"}, {"", "entry 1 is not NAME=VALUE"},
	}
	for _, tt := range tests {
		t.Run(tt.entry[:min(len(tt.entry), 40)], func(t *testing.T) {
			kept, dropped, err := Scrub([]string{tt.entry}, Rules{Visible: inside})
			if err != nil || len(kept) != 0 || len(dropped) != 1 {
				t.Fatalf("kept %v, dropped %v, %v; want it dropped", kept, dropped, err)
			}
			if dropped[0].Rule != tt.rule {
				t.Errorf("dropped by %q, want %q", dropped[0].Rule, tt.rule)
			}
			if _, value, _ := strings.Cut(tt.entry, "="); len(value) > 12 && strings.Contains(dropped[0].Name+dropped[0].Rule, value) {
				t.Errorf("%v shows the value", dropped[0])
			}
		})
	}
	if len(tests) < 100 {
		t.Errorf("only %d rows", len(tests))
	}
}

// What one variable means can hang on another.
func TestTogether(t *testing.T) {
	tests := []struct {
		name    string
		environ []string
		rules   Rules
		kept    string // NAME=VALUE (rule), joined by "; "
		dropped string // NAME
	}{
		{"first of two counts", []string{"A=1", "B=2", "A=3"}, Rules{}, "A=1 (not secret); B=2 (not secret)", ""},
		{"first of two, dropped", []string{"A=ghp_" + a36, "A=3"}, Rules{}, "", "A"},
		{"--secret", []string{"GITHUB_TOKEN=x", "GH_TOKEN=y"}, Rules{Secret: []string{"GITHUB_TOKEN"}}, "GITHUB_TOKEN=x (--secret)", "GH_TOKEN"},
		{"--secret of what is none", []string{"A=x"}, Rules{Secret: []string{"A"}}, "A=x (--secret)", ""},
		{"--secret, set and empty", []string{"A_TOKEN="}, Rules{Secret: []string{"A_TOKEN"}}, "A_TOKEN= (--secret)", ""},
		{"--secret wins over --env", []string{"A_TOKEN=x"}, Rules{Allow: []string{"A_TOKEN"}, Secret: []string{"A_TOKEN"}}, "A_TOKEN=x (--secret)", ""},
		{"--env", []string{"DISPLAY=:0", "TMPDIR=/x"}, Rules{Allow: []string{"DISPLAY"}}, "DISPLAY=:0 (--env)", "TMPDIR"},
		{"--env of what is unset", []string{"A=1"}, Rules{Allow: []string{"B", ""}, Secret: []string{""}}, "A=1 (not secret)", ""},
		{"--env of a switch", []string{"USE_TOKEN=1"}, Rules{Allow: []string{"USE_TOKEN"}}, "USE_TOKEN=1 (--env)", ""},
		{"--env of a whole preload", []string{"LD_PRELOAD=/x.so"}, Rules{Allow: []string{"LD_PRELOAD"}}, "LD_PRELOAD=/x.so (--env)", ""},
		{"--env of a file with credentials that is visible", []string{"GOOGLE_APPLICATION_CREDENTIALS=/work/sa.json"},
			Rules{Allow: []string{"GOOGLE_APPLICATION_CREDENTIALS"}, Visible: inside}, "GOOGLE_APPLICATION_CREDENTIALS=/work/sa.json (--env)", ""},
		{"launcher", []string{"SLURM_PROCID=3"}, Rules{}, "SLURM_PROCID=3 (launcher)", ""},
		{"preload in part", []string{"LD_PRELOAD=/gone.so:/usr/lib/libfaketime.so libc.so /$LIB/x.so"}, Rules{Visible: inside},
			"LD_PRELOAD=/usr/lib/libfaketime.so:libc.so:/$LIB/x.so (" + rulePreload + ")", ""},
		{"wayland in its directory", []string{"XDG_RUNTIME_DIR=/run/user/1", "WAYLAND_DISPLAY=wayland-1"}, Rules{Visible: inside},
			"WAYLAND_DISPLAY=wayland-1 (not secret)", "XDG_RUNTIME_DIR"},
		{"wayland, gone", []string{"WAYLAND_DISPLAY=wayland-0", "XDG_RUNTIME_DIR=/run/user/1"}, Rules{Visible: inside}, "", "WAYLAND_DISPLAY XDG_RUNTIME_DIR"},
		{"wayland without a directory", []string{"WAYLAND_DISPLAY=wayland-0"}, Rules{Visible: inside}, "WAYLAND_DISPLAY=wayland-0 (not secret)", ""},
		{"agent's pid goes with its socket", []string{"SSH_AGENT_PID=7", "SSH_AUTH_SOCK=/gone"}, Rules{}, "", "SSH_AGENT_PID SSH_AUTH_SOCK"},
		{"agent's pid stays with its socket", []string{"SSH_AGENT_PID=7", "SSH_AUTH_SOCK=/run/visible.sock"}, Rules{Visible: inside},
			"SSH_AGENT_PID=7 (not secret); SSH_AUTH_SOCK=/run/visible.sock (not secret)", ""},
		{"our own list of names", []string{"X_SANDBOX_SECRET=A_TOKEN, B", "A_TOKEN=x", "B=y"}, Rules{Secret: []string{"A_TOKEN", "B"}},
			"X_SANDBOX_SECRET=A_TOKEN, B (not secret); A_TOKEN=x (--secret); B=y (--secret)", ""},
		{"not our own", []string{"MY_SANDBOX_SECRET=hunter2", "SANDBOX_SECRET=ghp_" + a36}, Rules{}, "", "MY_SANDBOX_SECRET SANDBOX_SECRET"},
		{"nothing visible", []string{"TMPDIR=/tmp"}, Rules{}, "", "TMPDIR"},
		{"nothing", nil, Rules{}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kept, dropped, err := Scrub(tt.environ, tt.rules)
			if err != nil {
				t.Fatal(err)
			}
			var k, d []string
			for _, v := range kept {
				k = append(k, v.Name+"="+v.Value+" ("+v.Rule+")")
			}
			for _, v := range dropped {
				d = append(d, v.Name)
			}
			if got := strings.Join(k, "; "); got != tt.kept {
				t.Errorf("kept %s\nwant %s", got, tt.kept)
			}
			if got := strings.Join(d, " "); got != tt.dropped {
				t.Errorf("dropped %s, want %s", got, tt.dropped)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	environ := []string{"GITHUB_TOKEN=hunter2hunter2", "A=ghp_" + a36, "B=1", "REDISCLI_AUTH=", "DB_URL=x://u:hunter2hunter2@h"}
	tests := []struct {
		rules       Rules
		error, hint string
	}{
		{Rules{Allow: []string{"GITHUB_TOKEN"}}, "cannot let a secret through, GITHUB_TOKEN, secret shape: ends in _TOKEN",
			"--secret GITHUB_TOKEN passes it on this run"},
		{Rules{Allow: []string{"B", "A"}}, "cannot let a secret through, A, value looks like a GitHub token", "--secret A passes it on this run"},
		{Rules{Allow: []string{"DB_URL"}}, "cannot let a secret through, DB_URL, value looks like a URL with a password",
			"--secret DB_URL passes it on this run"},
		{Rules{Allow: []string{"REDISCLI_AUTH"}}, "cannot let a secret through, REDISCLI_AUTH, secret name", "--secret REDISCLI_AUTH passes it on this run"},
		{Rules{Allow: []string{"UNSET_PASSWORD"}}, "cannot let a secret through, UNSET_PASSWORD, secret shape: ends in _PASSWORD",
			"--secret UNSET_PASSWORD passes it on this run"},
		{Rules{Secret: []string{"UNSET"}}, "cannot pass a secret, UNSET, it is not set", "set UNSET, or leave out --secret UNSET"},
		{Rules{Allow: []string{"B=hunter2hunter2"}}, "cannot pass a variable, B, --env takes a name, not NAME=VALUE",
			"--env B, and set the variable before the command"},
		{Rules{Secret: []string{"X Y=hunter2hunter2"}}, `cannot pass a variable, "X Y", --secret takes a name, not NAME=VALUE`,
			`--secret "X Y", and set the variable before the command`},
		{Rules{Secret: []string{"=x"}}, `cannot pass a variable, "", --secret takes a name, not NAME=VALUE`,
			`--secret "", and set the variable before the command`},
	}
	for _, tt := range tests {
		kept, dropped, err := Scrub(environ, tt.rules)
		var refused *refusal.Error
		if !errors.As(err, &refused) {
			t.Errorf("%v: got %v, want a refusal", tt.rules, err)
			continue
		}
		if err.Error() != tt.error || refused.Hint != tt.hint {
			t.Errorf("got %s\n    %s\nwant %s\n    %s", err, refused.Hint, tt.error, tt.hint)
		}
		if text := err.Error() + refused.Hint; strings.Contains(text, "hunter2") || strings.Contains(text, a36) {
			t.Errorf("%s shows a value", text)
		}
		if kept != nil || dropped != nil {
			t.Errorf("%v: a refusal with %v and %v", tt.rules, kept, dropped)
		}
	}
}

// Each form is found by its own prefix: tokenAt looks at the first letter before it looks at the table.
func TestEachTokenForm(t *testing.T) {
	body := "ABCDEFGHIJKLMNOP"
	for _, tok := range tokens {
		run := body
		if !tok.exact {
			run = strings.Repeat(body, 5)
		}
		if tok.mixed {
			run = "1" + run
		}
		if got := secretValue("x " + tok.prefix + run + " y"); got != tok.what {
			t.Errorf("%s: got %q, want %q", tok.prefix, got, tok.what)
		}
		if got := secretValue("x " + tok.prefix + run[:min(tok.min-1, 8)] + " y"); got != "" {
			t.Errorf("%s with a short run: got %q", tok.prefix, got)
		}
	}
}

// The longest value that the kernel takes is looked through in no time, whatever it is made of, and ordinary data of that
// length is no secret.
func TestLongValues(t *testing.T) {
	const size = 100_000
	base64 := make([]byte, size)
	x := uint32(1)
	for i := range base64 {
		x = x*1664525 + 1013904223 // Numerical Recipes' generator
		base64[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[x>>26]
	}
	rep := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for i, value := range []string{string(base64), rep("a"), rep("word "), rep("://"), rep("a://b:"), rep("-----BEGIN "), rep("eyJ"), rep("eyJa.eyJa."),
		rep("sk-"), rep("sk- "), rep("authorization: basic x "), rep("http://a:1,"), rep("@tcp("), rep("ghp_ "), rep(" gh"), rep("unix:path=/a;")} {
		start := time.Now()
		kept, _, err := Scrub([]string{"LONG=" + value}, Rules{})
		if took := time.Since(start); took > time.Second {
			t.Errorf("value %d took %v", i, took)
		}
		if err != nil || len(kept) != 1 || kept[0].Value != value {
			t.Errorf("value %d (%.12s…) was not kept", i, value)
		}
	}
}

func BenchmarkScrub(b *testing.B) {
	environ := []string{"PATH=/usr/bin:/bin", "HOME=/home/u", "LS_COLORS=" + strings.Repeat("*.tar=01;31:", 120), "GITHUB_TOKEN=x"}
	for i := range 100 {
		environ = append(environ, "SOME_ORDINARY_NAME_"+strconv.Itoa(i)+"=/usr/share/some/ordinary/value")
	}
	for b.Loop() {
		Scrub(environ, Rules{Visible: inside})
	}
}

// FuzzScrub: Scrub never panics, accounts for each name once, changes no value but a preload, and shows none.
func FuzzScrub(f *testing.F) {
	f.Add("PATH=/bin\x00GITHUB_TOKEN=x\x00A=1\x00A=2\x00=\x00junk", "A", "PATH")
	f.Add("DISPLAY=:0\x00WAYLAND_DISPLAY=w\x00XDG_RUNTIME_DIR=/r\x00SESSION_MANAGER=a:@/b,c", "", "")
	f.Add("DBUS_SESSION_BUS_ADDRESS=unix:path=/a%2\x00LD_PRELOAD=: :/x\x00_=_\x00__=x\x00_TOKEN_=x\x00É=é", "X", "")
	f.Add("A=http://u:p@h://\x00B=-----BEGIN \x00C=authorization\x00D=eyJaaaaaaaaaa.eyJ\x00DOCKER_HOST=unix:", "", "A")
	f.Fuzz(func(t *testing.T, joined, allow, secret string) {
		environ := strings.Split(joined, "\x00")
		kept, dropped, err := Scrub(environ, Rules{Allow: []string{allow}, Secret: []string{secret}, Visible: inside})
		if err != nil {
			var refused *refusal.Error
			if !errors.As(err, &refused) || kept != nil || dropped != nil {
				t.Fatalf("%v with %v and %v", err, kept, dropped)
			}
			kept, dropped, _ = Scrub(environ, Rules{Visible: inside})
		}
		values, malformed := map[string]string{}, 0
		for _, entry := range environ {
			name, value, ok := strings.Cut(entry, "=")
			if _, dup := values[name]; !ok || name == "" {
				malformed++
			} else if !dup {
				values[name] = value
			}
		}
		for _, k := range kept {
			value, ok := values[k.Name]
			if !ok || value != k.Value && k.Rule != rulePreload {
				t.Errorf("kept %q=%q by %q, which was %q", k.Name, k.Value, k.Rule, value)
			}
			delete(values, k.Name)
		}
		for _, d := range dropped {
			if d.Name == "" {
				malformed--
				continue
			}
			value, ok := values[d.Name]
			if !ok || value == "" {
				t.Errorf("dropped %q=%q by %q", d.Name, value, d.Rule)
			}
			// Longer than what our own words could repeat by chance.
			if len(value) > 64 && strings.Contains(d.Rule, value) {
				t.Errorf("%q shows the value", d.Rule)
			}
			delete(values, d.Name)
		}
		if len(values) != 0 || malformed != 0 {
			t.Errorf("neither kept nor dropped: %q; %d malformed entries too few", values, malformed)
		}
	})
}

// git reads its numbered variables as one set: one that is missing makes every git command fail.
func TestGitConfigSet(t *testing.T) {
	environ := []string{"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=Ada",
		"GIT_CONFIG_KEY_1=http.extraheader", "GIT_CONFIG_VALUE_1=Authorization: Basic dXNlcjpwYXNzd29yZA==", "GIT_AUTHOR_NAME=Ada"}
	kept, dropped, err := Scrub(environ, Rules{})
	if err != nil || len(kept) != 1 || kept[0].Name != "GIT_AUTHOR_NAME" || len(dropped) != 5 {
		t.Errorf("kept %v, dropped %v, %v", kept, dropped, err)
	}
	kept, dropped, err = Scrub(environ[:3], Rules{})
	if err != nil || len(kept) != 3 || len(dropped) != 0 {
		t.Errorf("without a secret: kept %v, dropped %v, %v", kept, dropped, err)
	}
}
