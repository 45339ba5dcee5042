package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"
)

// TokensConfig says whose tokens count.
type TokensConfig struct {
	// Issuer is who issues the tokens, as their iss says. Without JWKS its keys are found as OpenID Connect Discovery says.
	Issuer string
	// Audience are the names of this server, of which a token's aud has to have one. There is at least one: a token for another server
	// of the same issuer is none for this.
	Audience []string
	// JWKS is where the issuer's keys are, "" for where its discovery document says. It is https, or on this machine.
	JWKS string
	// Client asks for them; nil for one that follows no redirect to another scheme, and gives up after ten seconds.
	Client *http.Client
	// Reserved reports whether a name is somebody else's, who proves it in another way, so that no token counts that has it as its sub; nil
	// for none.
	Reserved func(name string) bool
	// Failed is told that the keys could not be asked for, for the log; nil for nobody.
	Failed func(error)
}

// Tokens knows callers by JSON web tokens (RFC 7519) that an issuer has signed, as those of OpenID Connect. It reads sub as the name, exp,
// and as permissions scope (a list, or a text with spaces) and permissions.
type Tokens struct {
	cfg    TokensConfig
	parser *jwt.Parser
	ctx    context.Context
	stop   context.CancelFunc

	mu    sync.Mutex
	keys  keyfunc.Keyfunc
	tried time.Time
	err   error
}

// The bounds of tokens and of what issuers answer.
const (
	maxToken    = 16 << 10
	maxAnswer   = 1 << 20
	leeway      = 5 * time.Second
	fetchWithin = 10 * time.Second
	// unknownKeys is how often the issuer's keys are asked for because of a token with an unknown one, and retryAfter how often when the
	// issuer did not answer.
	unknownKeys = 5 * time.Second
	retryAfter  = 2 * time.Second
)

// methods are the signatures that count: those of which only the issuer has the key.
var methods = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// NewTokens returns what looks at tokens. The issuer is asked with the first one, so a server begins while its issuer is away. Close it
// when it is used no more.
//
// Errors: a configuration that cannot be meant.
func NewTokens(cfg TokensConfig) (*Tokens, error) {
	if cfg.Issuer == "" || len(cfg.Audience) == 0 || slices.Contains(cfg.Audience, "") {
		return nil, errors.New("tokens need an issuer, and the audience that this server is")
	}
	where := cfg.JWKS
	if where == "" {
		where = cfg.Issuer
	}
	if err := private(where); err != nil {
		return nil, err
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: fetchWithin, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	bounded := *cfg.Client
	bounded.Transport = boundedAnswers{cfg.Client.Transport}
	cfg.Client = &bounded
	if cfg.Failed == nil {
		cfg.Failed = func(error) {}
	}
	t := &Tokens{cfg: cfg, parser: jwt.NewParser(jwt.WithValidMethods(methods), jwt.WithIssuer(cfg.Issuer), jwt.WithAudience(cfg.Audience...),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(leeway))}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t, nil
}

// Close ends what asks for the issuer's keys.
func (t *Tokens) Close() { t.stop() }

// private refuses an address at which somebody on the way could put keys of their own.
func private(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("an issuer, and the place of its keys, is an https address")
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return errors.New("the keys of an issuer come by https, or from this machine")
}

// boundedAnswers bounds the bodies of what is asked for.
type boundedAnswers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	next := b.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// discovered is where an issuer says that its keys are.
func (t *Tokens) discovered(ctx context.Context) (string, error) {
	ctx, stop := context.WithTimeout(ctx, fetchWithin)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(t.cfg.Issuer, "/")+"/.well-known/openid-configuration", nil)
	if err != nil {
		return "", err
	}
	resp, err := t.cfg.Client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var said struct {
		Issuer string `json:"issuer"`
		JWKS   string `json:"jwks_uri"`
	}
	switch err := json.NewDecoder(resp.Body).Decode(&said); {
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("the issuer's discovery document: %s", resp.Status)
	case err != nil:
		return "", fmt.Errorf("the issuer's discovery document: %w", err)
	case said.Issuer != t.cfg.Issuer:
		return "", fmt.Errorf("the discovery document is that of another issuer, %.100q", said.Issuer)
	}
	return said.JWKS, private(said.JWKS)
}

// issuerKeys are the keys of the issuer. They are asked for again once an hour, and for a token with a key that is not among them.
func (t *Tokens) issuerKeys() (keyfunc.Keyfunc, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keys != nil || !t.tried.IsZero() && time.Since(t.tried) < retryAfter {
		return t.keys, t.err
	}
	where := t.cfg.JWKS
	var err error
	if where == "" {
		where, err = t.discovered(t.ctx)
	}
	strict := false
	if err == nil {
		t.keys, err = keyfunc.NewDefaultOverrideCtx(t.ctx, []string{where}, keyfunc.Override{Client: t.cfg.Client, HTTPTimeout: fetchWithin, NoErrorReturnFirstHTTPReq: &strict,
			RefreshUnknownKID: rate.NewLimiter(rate.Every(unknownKeys), 1), RateLimitWaitMax: time.Millisecond,
			RefreshErrorHandlerFunc: func(string) func(context.Context, error) {
				return func(_ context.Context, err error) { t.cfg.Failed(err) }
			}})
	}
	if t.tried = time.Now(); err != nil {
		t.keys = nil
		t.cfg.Failed(err)
	}
	t.err = err
	return t.keys, err
}

// errIssuer says that a token could not be looked at.
var errIssuer = errors.New("the keys of the tokens' issuer could not be asked for")

// claims are what is read of a token.
type claims struct {
	jwt.RegisteredClaims
	Scope       words `json:"scope"`
	Permissions words `json:"permissions"`
	all         map[string]any
}

// UnmarshalJSON keeps all claims beside those that are read.
func (c *claims) UnmarshalJSON(text []byte) error {
	type own claims
	if err := json.Unmarshal(text, (*own)(c)); err != nil {
		return err
	}
	return json.Unmarshal(text, &c.all)
}

// words are a list, or a text with spaces.
type words []string

// UnmarshalJSON takes either.
func (w *words) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*w = strings.Fields(one)
		return nil
	}
	var all []string
	err := json.Unmarshal(text, &all)
	*w = all
	return err
}

// Authenticate is an [Authenticate].
func (t *Tokens) Authenticate(r *http.Request) (Identity, error) {
	given := bearerOf(r)
	if given == "" {
		return Identity{}, ErrNoCredential
	}
	if len(given) > maxToken || strings.Count(given, ".") != 2 {
		return Identity{}, fmt.Errorf("%w: that is no token", ErrUnauthenticated)
	}
	keys, err := t.issuerKeys()
	if err != nil {
		return Identity{}, errIssuer // the reason is in the log
	}
	var c claims
	signed, err := t.parser.ParseWithClaims(given, &c, keys.KeyfuncCtx(r.Context()))
	switch {
	case err != nil:
		return Identity{}, fmt.Errorf("%w: %s", ErrUnauthenticated, why(err))
	case !forCallers(signed.Header["typ"]):
		return Identity{}, fmt.Errorf("%w: it is a token of another kind, as its typ says", ErrUnauthenticated)
	case t.cfg.Reserved != nil && t.cfg.Reserved(c.Subject):
		return Identity{}, fmt.Errorf("%w: its sub is the name of who has a key of this server", ErrUnauthenticated)
	}
	who := Identity{Name: c.Subject, Permissions: append(c.Scope, c.Permissions...), Claims: c.all, Expires: c.ExpiresAt.Add(leeway)}
	return who, who.Check()
}

// forCallers reports whether the typ of a token's header says that it is one of a caller: a JWT, or an access token (RFC 9068). Others, as
// those that approve, prove something else.
func forCallers(typ any) bool {
	kind, isText := typ.(string)
	kind = strings.TrimPrefix(strings.ToLower(kind), "application/")
	return typ == nil || isText && slices.Contains([]string{"", "jwt", "at+jwt"}, kind)
}

// why is what is wrong with a token, without anything of it.
func why(err error) string {
	for _, known := range []struct {
		kind error
		text string
	}{
		{jwt.ErrTokenMalformed, "it is malformed"}, {jwt.ErrTokenExpired, "it has expired"}, {jwt.ErrTokenNotValidYet, "it is not valid yet"},
		{jwt.ErrTokenInvalidAudience, "it is for another server"}, {jwt.ErrTokenInvalidIssuer, "it is of another issuer"},
		{jwt.ErrTokenRequiredClaimMissing, "a claim is missing"},
	} {
		if errors.Is(err, known.kind) {
			return known.text
		}
	}
	return "its signature does not count"
}
