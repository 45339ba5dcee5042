package screen

import (
	"io"
	"strings"
)

// Redacted stands in for a secret.
const Redacted = "[redacted]"

// Secrets are texts that must never be shown.
type Secrets struct{ known []string }

// Keep remembers secrets; empty ones are none.
func (s *Secrets) Keep(secrets ...string) {
	for _, secret := range secrets {
		if secret != "" {
			s.known = append(s.known, secret)
		}
	}
}

// Redact removes the secrets from a text. None should be in it: this is the second lock.
func (s *Secrets) Redact(text string) string {
	for _, secret := range s.known {
		text = strings.ReplaceAll(text, secret, Redacted)
	}
	return text
}

// Writer returns a writer that redacts what it passes on. Each write is redacted by itself: lines must arrive whole.
func (s *Secrets) Writer(to io.Writer) io.Writer { return redacting{s, to} }

type redacting struct {
	secrets *Secrets
	to      io.Writer
}

// Write implements io.Writer.
func (r redacting) Write(p []byte) (int, error) {
	if _, err := io.WriteString(r.to, r.secrets.Redact(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// IsSecretName reports whether values of that name are secrets, by the words in it.
func IsSecretName(name string) bool {
	plain := strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
	for _, word := range []string{"apikey", "authorization", "password", "secret", "credential", "privatekey"} {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return strings.HasSuffix(plain, "token") // "tokens" are counted, not kept secret
}
