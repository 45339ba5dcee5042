package token

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"superstep.dev/approval"
)

// Key is a public key that signatures are verified with.
type Key struct {
	// ID is what tokens name it by: letters, digits, dots, "-" and "_", at most 64.
	ID     string
	Public ed25519.PublicKey
	// From and until when tokens signed by it are believed; zero means always. What matters is when a token is verified,
	// not when it was signed, which a stolen key can lie about.
	NotBefore, RetiredAt time.Time
	// Owner is whose key it is: it must be set.
	Owner approval.Owner
}

// KeyError says what is wrong with a key, or with where it is read from. It never holds a key.
type KeyError struct {
	// Source is a file, or the name of an environment variable.
	Source  string
	Problem string
	// Err is the system's error, nil for none.
	Err error
}

// Error implements error.
func (e *KeyError) Error() string {
	text := "approval keys from " + e.Source + ": " + e.Problem
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap implements errors.Unwrap.
func (e *KeyError) Unwrap() error { return e.Err }

// Headers that a PEM block may have. One of Person, Issuer and Worker must be there.
const (
	headerPerson    = "Person" // who holds the key
	headerIssuer    = "Issuer" // the name of a service that authenticates people and signs for them
	headerWorker    = "Worker" // the name of workers that sign audits with it
	headerFor       = "For"    // whom the issuer signs for: people and group:NAME, separated by commas; left out, everybody
	headerID        = "Key-Id"
	headerNotBefore = "Not-Before" // RFC 3339
	headerRetiredAt = "Retired-At"
)

var keyID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// idOf is the id of a key that names none: 16 hex digits of the SHA-256 of its DER form.
func idOf(public ed25519.PublicKey) string {
	der, _ := x509.MarshalPKIXPublicKey(public) // an Ed25519 key always encodes
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:8])
}

// parsed is one block of a PEM text.
type parsed struct {
	Key
	private ed25519.PrivateKey // nil for a public key
}

// parse reads every key in a PEM text.
func parse(text []byte) ([]parsed, error) {
	var out []parsed
	for rest := text; ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		p, err := parseBlock(block)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	// The decoder passes over what it cannot read.
	if begun := strings.Count(string(text), "-----BEGIN "); begun != len(out) {
		return nil, fmt.Errorf("%d PEM blocks begin, and only %d can be read", begun, len(out))
	}
	if len(out) == 0 {
		return nil, errors.New("there is no PEM block")
	}
	return out, nil
}

func parseBlock(block *pem.Block) (parsed, error) {
	p, err := parseKey(block)
	if err != nil {
		return parsed{}, err
	}
	p.ID = idOf(p.Public)
	for name, value := range block.Headers {
		switch name {
		case headerPerson:
			p.Owner.Person = value
		case headerIssuer:
			p.Owner.Issuer = value
		case headerWorker:
			p.Owner.Worker = value
		case headerFor:
			for name := range strings.SplitSeq(value, ",") {
				p.Owner.For = append(p.Owner.For, strings.TrimSpace(name))
			}
		case headerID:
			if p.ID = value; !keyID.MatchString(value) {
				err = fmt.Errorf("%s has 1 to 64 letters, digits, dots, - and _", headerID)
			}
		case headerNotBefore:
			p.NotBefore, err = time.Parse(time.RFC3339, value)
		case headerRetiredAt:
			p.RetiredAt, err = time.Parse(time.RFC3339, value)
		default:
			err = fmt.Errorf("the header %.40q is none of %s, %s, %s, %s, %s, %s, %s", name, headerPerson, headerIssuer, headerWorker, headerFor,
				headerID, headerNotBefore, headerRetiredAt)
		}
		if err != nil {
			return parsed{}, err
		}
	}
	if err := p.Owner.Check(); err != nil {
		return parsed{}, fmt.Errorf("%w: give the PEM block of the key %s a header \"%s: NAME\" (who holds the key) or \"%s: NAME\" (a "+
			"service that authenticates people), and an empty line behind it", err, p.ID, headerPerson, headerIssuer)
	}
	return p, nil
}

func parseKey(block *pem.Block) (parsed, error) {
	switch block.Type {
	case "PUBLIC KEY":
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if public, ok := key.(ed25519.PublicKey); ok && err == nil {
			return parsed{Key: Key{Public: public}}, nil
		}
	case "PRIVATE KEY":
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if private, ok := key.(ed25519.PrivateKey); ok && err == nil {
			return parsed{Key: Key{Public: private.Public().(ed25519.PublicKey)}, private: private}, nil
		}
	}
	// What the parsers say may hold a piece of the key.
	return parsed{}, errors.New("a PEM block is no Ed25519 key (PUBLIC KEY or, in PKCS #8 and unencrypted, PRIVATE KEY): make one " +
		"with openssl genpkey -algorithm ed25519")
}

// Generate returns a new key pair as PEM: the private key for who signs, the public one for workers. owner is whose it is;
// id is the key's, "" for one that follows from the key. The error is a [*KeyError].
func Generate(owner approval.Owner, id string) (private, public []byte, err error) {
	headers, err := headersOf(owner, id)
	if err != nil {
		return nil, nil, &KeyError{Source: "a new pair", Problem: "it cannot be made", Err: err}
	}
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, nil, &KeyError{Source: "a new pair", Problem: "no randomness", Err: err}
	}
	pkix, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Headers: headers, Bytes: pkcs8}),
		pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Headers: headers, Bytes: pkix}), nil
}

// headersOf are the headers of a new key, which are read as they are written.
func headersOf(owner approval.Owner, id string) (map[string]string, error) {
	if id != "" && !keyID.MatchString(id) {
		return nil, errors.New("its id has 1 to 64 letters, digits, dots, - and _")
	}
	if err := owner.Check(); err != nil {
		return nil, err
	}
	headers := map[string]string{}
	for name, value := range map[string]string{
		headerPerson: owner.Person, headerIssuer: owner.Issuer, headerWorker: owner.Worker, headerFor: strings.Join(owner.For, ", "), headerID: id,
	} {
		if value != strings.TrimSpace(value) {
			return nil, fmt.Errorf("%s begins or ends with a space", name)
		}
		if value != "" {
			headers[name] = value
		}
	}
	for _, name := range owner.For {
		if strings.Contains(name, ",") || name != strings.TrimSpace(name) {
			return nil, fmt.Errorf("the name %.40q cannot stand in %s, where commas separate names", name, headerFor)
		}
	}
	return headers, nil
}
