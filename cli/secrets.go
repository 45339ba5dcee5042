package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"go.temporal.io/sdk/contrib/envconfig"
)

// redacted stands in for a secret.
const redacted = "[redacted]"

// keepSecrets remembers what must never be shown.
func (a *app) keepSecrets(p *envconfig.ClientConfigProfile) {
	keep := func(secret string) {
		if secret != "" {
			a.secrets = append(a.secrets, secret)
		}
	}
	keep(p.APIKey)
	if p.Codec != nil {
		keep(p.Codec.Auth)
	}
	for name, value := range p.GRPCMeta {
		if isSecretName(name) {
			keep(value)
		}
	}
	if p.TLS != nil {
		keep(string(p.TLS.ClientKeyData))
	}
}

// redact removes the secrets of the connection from a text. None should be in it: this is the second lock.
func (a *app) redact(s string) string {
	for _, secret := range a.secrets {
		s = strings.ReplaceAll(s, secret, redacted)
	}
	return s
}

// redactingWriter keeps the secrets of the connection out of the logs.
type redactingWriter struct {
	app *app
	to  io.Writer
}

// Write implements io.Writer. Log lines arrive whole.
func (w redactingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, w.app.redact(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// isSecretName reports whether values of that name are secrets, by the words in it.
func isSecretName(name string) bool {
	plain := strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
	for _, word := range []string{"apikey", "authorization", "password", "secret", "credential", "privatekey"} {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return strings.HasSuffix(plain, "token") // "tokens" are counted, not kept secret
}

// readAPIKey reads an API key from a file that holds nothing else.
func readAPIKey(path string) (string, error) {
	const most = 16 << 10
	file, err := os.Open(path)
	if err != nil {
		return "", &usageError{message: fmt.Sprintf("--api-key-file: %v", err), err: err}
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return "", &usageError{message: fmt.Sprintf("--api-key-file: %v", err), err: err}
	}
	key := strings.TrimSpace(string(text))
	if key == "" || len(key) > most || strings.IndexFunc(key, notInKey) >= 0 {
		return "", usagef("--api-key-file: %s does not hold one API key and nothing else", quoted(path))
	}
	return key, nil
}

// notInKey reports whether r cannot be part of an API key, which travels in a header.
func notInKey(r rune) bool { return r <= ' ' || r > '~' }
