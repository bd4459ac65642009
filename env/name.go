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
	return ""
}

// joined are the words that make a secret of a name they end, written together: PGPASSWORD, NGROK_AUTHTOKEN, apiKey.
var joined = [...]string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "AUTHKEY", "ACCESSKEY",
	"SECRETKEY", "PRIVATEKEY"}

// endsSecret decides by the last word, the one before it and, where a word has a harmless meaning too, the value.
func endsSecret(first, prev, last, value string) bool {
	switch last {
	case "TOKEN":
		return !textToken(prev)
	case "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "COOKIE", "APIKEY", "AUTHKEY",
		"ACCESSKEY", "SECRETKEY", "PRIVATEKEY":
		return true
	case "CREDENTIAL", "CREDENTIALS", "CREDS", "CRED": // a path is judged by what is visible
		return !strings.HasPrefix(value, "/")
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
		"SUBSCRIPTION", "SESSION", "HMAC", "JWT", "FERNET", "DEPLOY", "CREDENTIAL":
		return true
	case "OPENAI", "ANTHROPIC", "CLAUDE", "GEMINI", "GOOGLE", "GROQ", "MISTRAL", "COHERE", "OPENROUTER", "XAI", "DEEPSEEK",
		"REPLICATE", "TOGETHER", "FIREWORKS", "PERPLEXITY", "PINECONE", "WANDB", "COMET", "NGC", "KAGGLE", "HF", "AWS",
		"CLOUDFLARE", "GITHUB", "GITLAB", "STRIPE", "TWILIO", "SENDGRID", "MAILGUN", "DATADOG", "DD":
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
