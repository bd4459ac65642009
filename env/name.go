package env

import "strings"

// secretName returns the rule by which a name marks a secret, or "". The value is used only to tell a setting from a
// secret where the name fits both: USE_AUTH=1, BUILD_PWD=/src.
func secretName(name, value string) string {
	if strings.HasPrefix(name, "BASH_FUNC_") {
		return "" // an exported shell function: what it is called says nothing about its text
	}
	upper := strings.ToUpper(name)
	if exactSecret(upper) {
		return "secret name"
	}
	if pointer(upper) && (value == "" || value[0] == '/') {
		return "" // a path: judged by what is visible
	}
	if isSwitch(value) {
		return "" // HF_HUB_DISABLE_IMPLICIT_TOKEN=1
	}
	return secretShape(splitName(upper), value)
}

// exactSecret knows the secrets that no shape catches. Names are compared upper-cased: npm reads npm_config__auth as well.
// Passwords of launchers' namesakes (Proxmox's PBS_PASSWORD) have a shape and need no line here.
func exactSecret(upper string) bool {
	switch upper {
	case "MYSQL_PWD", "REDISCLI_AUTH", "PGPASSWORD", "SSHPASS", "DBPASS", "RCLONE_CONFIG_PASS", // clients
		"DOCKER_AUTH_CONFIG", "NPM_CONFIG__AUTH", "NPM_CONFIG__AUTHTOKEN", "COMPOSER_AUTH", // package managers
		"BUNDLE_GITHUB__COM", "BUNDLE_RUBYGEMS__PKG__GITHUB__COM",
		"BW_SESSION", "SOPS_AGE_KEY", "VAULT_UNSEAL_KEY", // password managers
		"SLURM_JWT", "CI_JOB_JWT", "CI_JOB_JWT_V1", "CI_JOB_JWT_V2", // schedulers
		"AWS_ACCESS_KEY_ID", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", // the path is what authorises, in ECS
		"AUTHORIZATION", "HTTP_AUTHORIZATION", "PROXY_AUTHORIZATION", "BEARER", // headers
		"IDENTITY_HEADER", "AZURE_STORAGE_CONNECTION_STRING", "DD_APP_KEY", "DATADOG_APP_KEY":
		return true
	}
	return strings.HasPrefix(upper, "OP_SESSION_") || // 1Password, one per account
		strings.HasPrefix(upper, "TF_TOKEN_") || // Terraform, one per host
		strings.HasPrefix(upper, "POETRY_PYPI_TOKEN_")
}

// pointer knows the variables that name a file or directory with secrets in it.
func pointer(upper string) bool {
	switch upper {
	case "KUBECONFIG", "DOCKER_CONFIG", "GNUPGHOME", "PGPASSFILE", "NETRC", "REGISTRY_AUTH_FILE",
		"GOOGLE_APPLICATION_CREDENTIALS", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AZURE_FEDERATED_TOKEN_FILE", "TF_CLI_CONFIG_FILE", "HF_TOKEN_PATH", "MODELSCOPE_CREDENTIALS_PATH", "XAUTHORITY":
		return true
	}
	return false
}

// splitName returns the words of an upper-cased name, without what only numbers or encodes it: API_TOKEN_2 and
// DEPLOY_KEY_B64 are judged as API_TOKEN and DEPLOY_KEY.
func splitName(upper string) []string {
	w := strings.FieldsFunc(upper, func(r rune) bool { return r < 0x80 && !isAlnum(byte(r)) })
	for len(w) > 0 {
		last := w[len(w)-1]
		if last == "B64" || last == "BASE64" || strings.Trim(last, "0123456789") == "" {
			w = w[:len(w)-1]
			continue
		}
		w[len(w)-1] = strings.TrimRight(last, "0123456789")
		break
	}
	return w
}

// secretShape returns the rule by which the words of a name mark a secret, or "".
func secretShape(w []string, value string) string {
	if len(w) == 0 {
		return ""
	}
	last, prev := w[len(w)-1], ""
	if len(w) > 1 {
		prev = w[len(w)-2]
	}
	if endsSecret(w[0], prev, last, value) {
		if prev == "" {
			return "secret shape: " + last
		}
		return "secret shape: ends in _" + last
	}
	for _, s := range joined {
		if strings.HasSuffix(last, s) && last != s {
			return "secret shape: ends in " + s
		}
	}
	if describes(last) {
		return ""
	}
	for i := 1; i < len(w); i++ {
		if secretPair(w[i-1], strings.TrimSuffix(w[i], "S")) {
			return "secret shape: contains " + w[i-1] + "_" + w[i]
		}
	}
	if last == "KEYS" && keyOf(prev) {
		return "secret shape: ends in _KEYS"
	}
	return ""
}

// joined are the words that make a secret of a name they end, written together: PGPASSWORD, NGROK_AUTHTOKEN, apiKey.
var joined = [...]string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "AUTHKEY", "ACCESSKEY",
	"SECRETKEY", "PRIVATEKEY", "SECRETS", "PASSWORDS", "APIKEYS", "AUTHTOKENS", "SEEDPHRASE"}

// endsSecret decides by the last word, the one before it and, where a word has a harmless meaning too, the value.
func endsSecret(first, prev, last, value string) bool {
	switch last {
	case "TOKEN":
		return !textToken(prev)
	case "TOKENS": // MAX_TOKENS and CONTEXT_TOKENS are counts, and so is any number
		return !number(value) && (giver(prev) || vendor(prev))
	case "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSWDS", "PASSPHRASE", "PASSPHRASES", "PASSCODE", "PASSCODES",
		"COOKIE", "APIKEY", "APIKEYS", "AUTHKEY", "AUTHKEYS", "AUTHTOKENS", "ACCESSKEY", "ACCESSKEYS", "SECRETKEY", "SECRETKEYS",
		"PRIVATEKEY", "PRIVATEKEYS", "SEEDPHRASE", "TOTP", "HOTP":
		return true
	case "CREDENTIAL", "CREDENTIALS", "CREDS", "CRED": // a path is judged by what is visible
		return !strings.HasPrefix(value, "/")
	case "COOKIES": // sid=1, not firefox
		return value == "" || strings.Contains(value, "=")
	case "PIN": // a person's or a token's; GPIO_PIN=17 and I_MPI_PIN are none
		return pinOf(prev) && (len(value) > 3 || !number(value)) || prev == "" && number(value) && len(value) > 3
	case "OTP": // a one-time password, or Erlang/OTP
		return !erlang(prev) && !asks(prev) && !shortVersion(value) && !strings.HasPrefix(value, "/")
	case "2FA", "MFA", "TFA": // how (u2f), or the code itself
		return !asks(prev) && (value == "" || digits(value) >= 4) && !strings.HasPrefix(value, "/")
	case "CODE":
		return oneTime(prev)
	case "CODES":
		return oneTime(prev) || prev == "BACKUP"
	case "MNEMONIC", "MNEMONICS": // of a wallet, or of a menu or an assembler
		return !letter(prev) && !strings.HasPrefix(value, "/")
	case "PHRASE":
		return seedOf(prev) || prev == "SEED" || prev == "PASS" || prev == "BACKUP"
	case "WORDS": // a number is how many, a path a list of all
		return (seedOf(prev) || prev == "SEED") && !number(value) && !strings.HasPrefix(value, "/")
	case "SEED": // a number is that of a random generator; twelve words are a wallet
		return (seedOf(prev) || oneTime(prev)) && !number(value) && !strings.HasPrefix(value, "/") || strings.Count(value, " ") >= 11
	case "AUTH":
		return prev != "" && !authMethod(value)
	case "SESSION": // DESKTOP_SESSION and BYOBU_SESSION say where, not who
		return prev == "AUTH" || prev == "LOGIN"
	case "PWD": // a password of an account; otherwise a directory, like PWD itself
		return prev != "" && (account(prev) || !strings.HasPrefix(value, "/"))
	case "PASS", "PW": // RENDER_PASS is a step, DB_PASS a password
		return account(prev) || (prev == "" || prev == "MY") && strings.Trim(value, "0123456789") != ""
	case "PAT": // a personal access token or a pattern
		return prev != "" && !strings.ContainsAny(value, `*?[]^$\|()/ `)
	case "KEY":
		return keyOf(prev) || first == "AZURE"
	}
	return false
}

// number: decimal digits alone. Nothing is none: what has no value is judged by its name.
func number(value string) bool {
	return value != "" && strings.Trim(value, "0123456789") == ""
}

func digits(value string) (n int) {
	for i := 0; i < len(value); i++ {
		if '0' <= value[i] && value[i] <= '9' {
			n++
		}
	}
	return n
}

// giver: words for what a token gives or who has it, before _TOKENS; vendors are others.
func giver(prev string) bool {
	switch prev {
	case "AUTH", "ACCESS", "API", "BEARER", "REFRESH", "SESSION", "DEPLOY", "BOT", "ADMIN", "LOGIN", "SERVICE", "SECRET", "RUNNER",
		"REGISTRY", "WEBHOOK", "JWT", "OAUTH":
		return true
	}
	return false
}

// pinOf: what a PIN opens.
func pinOf(prev string) bool {
	switch prev {
	case "USER", "ADMIN", "SO", "CARD", "SIM", "TOKEN", "HSM", "SOFTHSM", "PKCS11", "PIV", "YUBIKEY", "NITROKEY", "SMARTCARD", "OPENPGP",
		"FIDO", "FIDO2", "TPM", "LOGIN", "UNLOCK", "WALLET", "ACCOUNT", "SECURITY", "BANK", "DEBIT", "CREDIT", "SECRET", "OTP", "TOTP", "MFA":
		return true
	}
	return false
}

// oneTime: the kinds of second factor, before _CODE and _SEED.
func oneTime(prev string) bool {
	switch prev {
	case "OTP", "TOTP", "HOTP", "MFA", "2FA", "TFA", "TWOFACTOR", "RECOVERY":
		return true
	}
	return false
}

// seedOf: whose seed or words are a key.
func seedOf(prev string) bool {
	switch prev {
	case "MNEMONIC", "RECOVERY", "WALLET", "SECRET", "BIP39", "HD", "NKEY", "NKEYS", "ED25519", "SIGNING":
		return true
	}
	return false
}

// letter: whose mnemonic is a letter or a short word.
func letter(prev string) bool {
	switch prev {
	case "MENU", "KEYBOARD", "LABEL", "BUTTON", "SHOW", "OPCODE", "OP", "ASM", "INSN", "INSTR", "INSTRUCTION", "CPU":
		return true
	}
	return false
}

// asks: words that make a switch of what follows.
func asks(prev string) bool {
	switch prev {
	case "ENABLE", "DISABLE", "REQUIRE", "FORCE", "USE", "SKIP", "NO", "ALLOW", "WITH", "HAS", "SUPPORTS":
		return true
	}
	return false
}

func erlang(prev string) bool {
	switch prev {
	case "ERLANG", "ERL", "BEAM", "ELIXIR", "REBAR", "KERL":
		return true
	}
	return false
}

// shortVersion: 26 or 26.2.1-rc1, which no one-time password looks like.
func shortVersion(value string) bool {
	n := run(value, func(c byte) bool { return '0' <= c && c <= '9' })
	return n > 0 && n < 4 && (n == len(value) || value[n] == '.' || value[n] == '-')
}

// textToken: the tokens of a text, not of a person.
func textToken(prev string) bool {
	switch prev {
	case "PAD", "EOS", "BOS", "UNK", "MASK", "SEP", "CLS", "STOP", "SPECIAL", "MAX", "MIN", "PER", "NUM":
		return true
	}
	return false
}

// account: words for what one logs in to, before _PASS and _PWD.
func account(prev string) bool {
	switch prev {
	case "DB", "DATABASE", "SQL", "MYSQL", "MARIADB", "PG", "POSTGRES", "POSTGRESQL", "ORACLE", "MSSQL", "SA", "MONGO",
		"MONGODB", "REDIS", "RABBITMQ", "AMQP", "MQTT", "SMTP", "IMAP", "MAIL", "EMAIL", "FTP", "SFTP", "LDAP", "BIND",
		"USER", "ADMIN", "ROOT", "SUDO", "LOGIN", "AUTH", "BASIC", "PROXY", "HTTP", "HTTPS", "SSH", "VNC", "RDP", "WIFI",
		"KEYSTORE", "TRUSTSTORE", "KEY", "CERT", "REGISTRY", "DOCKER", "GIT", "SVN", "NEXUS", "ARTIFACTORY":
		return true
	}
	return false
}

// keyOf: only these make a secret of a _KEY; SORT_KEY, CACHE_KEY and PUBLIC_KEY are none.
func keyOf(prev string) bool {
	switch prev {
	case "API", "ACCESS", "PRIVATE", "SECRET", "AUTH", "SIGNING", "ENCRYPTION", "DECRYPTION", "MASTER", "ACCOUNT",
		"SUBSCRIPTION", "SESSION", "HMAC", "JWT", "FERNET", "DEPLOY", "CREDENTIAL", "RECOVERY", "OTP", "TOTP", "MFA":
		return true
	}
	return vendor(prev)
}

// vendor: words for one who gives out keys and tokens, where the word has no other meaning.
func vendor(word string) bool {
	switch word {
	case "OPENAI", "ANTHROPIC", "CLAUDE", "GEMINI", "GROQ", "MISTRAL", "COHERE", "OPENROUTER", "XAI", "DEEPSEEK", "REPLICATE",
		"TOGETHER", "FIREWORKS", "PERPLEXITY", "PINECONE", "WANDB", "COMET", "NGC", "KAGGLE", "HF", "HUGGINGFACE", "MODELSCOPE",
		"AWS", "AZURE", "GOOGLE", "GCP", "GCLOUD", "CLOUDFLARE", "DIGITALOCEAN", "HCLOUD", // clouds
		"GITHUB", "GITLAB", "BITBUCKET", "NPM", "PYPI", "TWINE", // forges and registries
		"STRIPE", "TWILIO", "SENDGRID", "MAILGUN", "DATADOG", "DD", "SENTRY", "SLACK", "DISCORD", "TELEGRAM": // services
		return true
	}
	return false
}

// secretPair: two words that mark a secret wherever they stand in a name, as in AWS_ACCESS_KEY_ID or SECRET_KEY_BASE.
func secretPair(a, b string) bool {
	switch b {
	case "KEY":
		switch a {
		case "API", "ACCESS", "PRIVATE", "SECRET", "SIGNING", "ENCRYPTION":
			return true
		}
	case "TOKEN":
		switch a {
		case "AUTH", "ACCESS", "API", "BEARER", "REFRESH":
			return true
		}
	case "SECRET":
		return a == "CLIENT"
	}
	return false
}

// describes: last words that speak about a secret and hold none, as in API_KEY_HEADER or PRIVATE_KEY_PATH.
func describes(last string) bool {
	switch last {
	case "FILE", "PATH", "DIR", "NAME", "ENV", "URL", "URI", "HOST", "HEADER", "PREFIX", "TYPE", "FORMAT", "ALGORITHM", "ALG",
		"METHOD", "SIZE", "LENGTH", "BITS", "COUNT", "LIMIT", "TTL", "TIMEOUT", "EXPIRY", "EXPIRES", "EXPIRATION", "SECONDS",
		"ENABLED", "DISABLED", "REQUIRED", "HELPER", "COMMAND", "CMD", "PROVIDER", "STORE":
		return true
	}
	return false
}

// authMethod: a value of an …_AUTH that names how to log in, not with what.
func authMethod(value string) bool {
	switch strings.ToLower(value) {
	case "basic", "plain", "digest", "ntlm", "negotiate", "kerberos", "gssapi", "oauth", "oauth2", "oidc", "jwt", "ldap", "saml",
		"mtls", "tls", "ssl", "token", "bearer", "password", "netrc", "any", "anonymous", "trust", "peer", "md5", "iam", "munge":
		return true
	}
	return false
}

// isSwitch: a value that turns something on or off is no secret, whatever it is called.
func isSwitch(value string) bool {
	if len(value) > len("disabled") {
		return false
	}
	switch strings.ToLower(value) {
	case "0", "1", "true", "false", "yes", "no", "on", "off", "none", "null", "auto", "enabled", "disabled":
		return true
	}
	return false
}
