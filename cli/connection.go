package cli

import (
	"cmp"
	"context"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"

	"superstep.dev"
	"superstep.dev/cli/screen"
	"superstep.dev/internal/files"
	"superstep.dev/thread/live"
	"superstep.dev/thread/storage"
)

// defaultAddress is where a server on this machine listens.
const defaultAddress = "127.0.0.1:7233"

// connectionFlags are the flags that say which server, and which workers behind it. There is none for a secret:
// command lines are visible to everybody on the machine.
type connectionFlags struct {
	address, namespace, taskQueue         string
	apiKeyFile                            string
	tlsCert, tlsKey, tlsCA, tlsServerName string
	profile, config                       string
	storage, live                         string
	keys, keysCommand                     string
	archive                               string // of threads, which stands for a server

	set *pflag.FlagSet
}

// connection is how a command finds its server. Tests replace its parts.
type connection struct {
	conn    connectionFlags
	env     envconfig.EnvLookup
	payload converter.DataConverter // nil for Temporal's default
	storage *storage.Storage        // nil for none, and until the options are put together
	tokens  live.Transport          // of a command that is connected, nil else
	sealed  func(problem error)     // is told when the keys cannot be read any more
	secrets *screen.Secrets
	backend backend
}

func newConnection(payload converter.DataConverter) connection {
	return connection{env: envconfig.EnvLookupOS, payload: payload, secrets: &screen.Secrets{}, backend: temporalBackend()}
}

// register declares the flags, in the order in which help and printed commands show them.
func (f *connectionFlags) register(into *pflag.FlagSet) {
	set := pflag.NewFlagSet("connection", pflag.ContinueOnError)
	set.SortFlags = false
	set.StringVar(&f.address, "address", "", "server, `HOST:PORT` (TEMPORAL_ADDRESS; default "+defaultAddress+")")
	set.StringVar(&f.namespace, "namespace", "", "`NAME` of the namespace (TEMPORAL_NAMESPACE; default default)")
	set.StringVar(&f.taskQueue, "task-queue", superstep.DefaultTaskQueue, "`NAME` of the workers' task queue")
	set.StringVar(&f.apiKeyFile, "api-key-file", "", "`FILE` with the API key (or TEMPORAL_API_KEY)")
	set.StringVar(&f.tlsCert, "tls-cert", "", "client certificate, PEM `FILE`")
	set.StringVar(&f.tlsKey, "tls-key", "", "key of the client certificate, PEM `FILE`")
	set.StringVar(&f.tlsCA, "tls-ca", "", "certificate authority of the server, PEM `FILE`")
	set.StringVar(&f.tlsServerName, "tls-server-name", "", "`NAME` in the server's certificate")
	set.StringVar(&f.profile, "profile", "", "`NAME` of a profile of the configuration file (TEMPORAL_PROFILE)")
	set.StringVar(&f.config, "config", "", "configuration `FILE` (TEMPORAL_CONFIG_FILE)")
	set.StringVar(&f.storage, "storage", "", "`PLACE` of large values, the same for all: a directory, s3://BUCKET/PREFIX or none (SUPERSTEP_STORAGE; default what a devserver of this machine says)")
	set.StringVar(&f.live, "live", "", "`URL` of the NATS server that carries what nodes emit while they run, the same for all, or none (SUPERSTEP_LIVE; default what a devserver of this machine says)")
	set.StringVar(&f.keys, "keys", "", "`FILE` with the keys that encrypt what is stored, the same for all (SUPERSTEP_KEYS; see superstep keys)")
	set.StringVar(&f.keysCommand, "keys-command", "", "`COMMAND` that writes such a file's text, in place of --keys (SUPERSTEP_KEYS_COMMAND)")
	into.AddFlagSet(set)
	f.set = set
}

// clientOptions puts a connection together: the configuration file, over it the TEMPORAL_ variables, over both the
// flags.
func (c *connection) clientOptions() (client.Options, error) {
	f := &c.conn
	if err := f.check(); err != nil {
		return client.Options{}, err
	}
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{
		ConfigFilePath:    f.config,
		ConfigFileProfile: f.profile,
		EnvLookup:         c.env,
	})
	if err != nil {
		return client.Options{}, configError(err)
	}
	if err := f.apply(&profile); err != nil {
		return client.Options{}, err
	}
	c.keepSecrets(&profile)
	if err := checkAddress(profile.Address); err != nil {
		return client.Options{}, err
	}
	opts, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return client.Options{}, usagef("the connection's settings: %w", err)
	}
	if err := c.renew(&opts, &profile); err != nil {
		return client.Options{}, err
	}
	if opts.DataConverter, err = c.dataConverter(&profile); err != nil {
		return client.Options{}, err
	}
	if c.storage, err = openStorage(c.storagePlace()); err != nil {
		return client.Options{}, err
	}
	opts.ExternalStorage = c.storage.External()
	return opts, c.checkLive()
}

// renew has the connection read certificates at each handshake and the API key at each call: their files may be renewed while this process
// runs.
func (c *connection) renew(opts *client.Options, p *envconfig.ClientConfigProfile) error {
	if tls := opts.ConnectionOptions.TLS; tls != nil && p.TLS != nil {
		certs := files.Certificates{Cert: p.TLS.ClientCertPath, Key: p.TLS.ClientKeyPath, CA: p.TLS.ServerCACertPath,
			Name: cmp.Or(p.TLS.ServerName, hostOf(cmp.Or(p.Authority, p.Address)))}
		if err := certs.Use(tls); err != nil {
			return usagef("the connection's settings: %w", err)
		}
	}
	if c.conn.apiKeyFile != "" {
		opts.Credentials = client.NewAPIKeyDynamicCredentials(c.apiKey(p.APIKey))
	}
	return nil
}

// apiKey returns a function that reads the API key from its file. While the file has no key, for instance because it is being written, the
// function returns the key before.
func (c *connection) apiKey(last string) func(context.Context) (string, error) {
	var mu sync.Mutex
	return func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if key, err := readSecretFile("--api-key-file", c.conn.apiKeyFile, "API key"); err == nil && key != last {
			c.secrets.Keep(key)
			last = key
		}
		return last, nil
	}
}

// hostOf is the host of an address, which may be a resolver's, such as dns:///HOST:PORT.
func hostOf(address string) string {
	address = address[strings.LastIndexByte(address, '/')+1:]
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// storagePlace is where large values lie, "" when nobody said.
func (c *connection) storagePlace() string {
	if c.conn.archive != "" {
		return noStorage // the archive has the values
	}
	if c.conn.storage != "" {
		return c.conn.storage
	}
	place, _ := c.env.LookupEnv("SUPERSTEP_STORAGE")
	return place
}

// keepSecrets remembers what must never be shown.
func (c *connection) keepSecrets(p *envconfig.ClientConfigProfile) {
	c.secrets.Keep(p.APIKey)
	if p.Codec != nil {
		c.secrets.Keep(p.Codec.Auth)
	}
	for name, value := range p.GRPCMeta {
		if screen.IsSecretName(name) {
			c.secrets.Keep(value)
		}
	}
	if p.TLS != nil {
		c.secrets.Keep(string(p.TLS.ClientKeyData))
	}
}

// check refuses flags that cannot be meant.
func (f *connectionFlags) check() error {
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return usagef("--tls-cert and --tls-key go together")
	}
	if strings.TrimSpace(f.taskQueue) == "" {
		return usagef("--task-queue is empty")
	}
	if f.config != "" {
		if _, err := os.Stat(f.config); err != nil { // the loader takes a missing file for an empty one
			return usagef("--config: %w", err)
		}
	}
	return nil
}

// apply lets the flags win.
func (f *connectionFlags) apply(p *envconfig.ClientConfigProfile) error {
	p.Address = cmp.Or(f.address, p.Address, defaultAddress)
	p.Namespace = cmp.Or(f.namespace, p.Namespace, client.DefaultNamespace)
	if f.apiKeyFile != "" {
		key, err := readSecretFile("--api-key-file", f.apiKeyFile, "API key")
		if err != nil {
			return err
		}
		p.APIKey = key
	}
	if f.tlsCert+f.tlsCA+f.tlsServerName == "" {
		return nil
	}
	if p.TLS == nil {
		p.TLS = &envconfig.ClientConfigTLS{}
	}
	p.TLS.Disabled = false
	if f.tlsCert != "" {
		p.TLS.ClientCertPath, p.TLS.ClientCertData = f.tlsCert, nil
		p.TLS.ClientKeyPath, p.TLS.ClientKeyData = f.tlsKey, nil
	}
	if f.tlsCA != "" {
		p.TLS.ServerCACertPath, p.TLS.ServerCACertData = f.tlsCA, nil
	}
	p.TLS.ServerName = cmp.Or(f.tlsServerName, p.TLS.ServerName)
	return nil
}

// tomlPlace finds the place in a TOML parser's message.
var tomlPlace = regexp.MustCompile(`toml: line (\d+)(?: \(last key ("[^"]*")\))?`)

// configError explains a configuration that cannot be read. A parser's own message may quote the file, and the file
// may hold an API key: only the place is passed on.
func configError(err error) error {
	place := tomlPlace.FindStringSubmatch(err.Error())
	switch {
	case place == nil:
		return usagef("the connection's settings: %w", err)
	case place[2] == "":
		return usagef("the configuration file is not right at line %s", place[1])
	default:
		return usagef("the configuration file is not right at line %s, at or after the key %s", place[1], place[2])
	}
}

// checkAddress refuses an address without a port, as it would only be noticed by a timeout. Names with a scheme are
// the resolver's.
func checkAddress(address string) error {
	if strings.Contains(address, "://") {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" {
		return usagef("the server's address %s is not HOST:PORT, for instance %s", quoted(address), defaultAddress)
	}
	return nil
}

// readSecretFile reads what travels in a header from a file that holds nothing else; flag names it, and what is its name.
func readSecretFile(flag, path, what string) (string, error) {
	const most = 16 << 10
	file, err := os.Open(path)
	if err != nil {
		return "", usagef("%s: %w", flag, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return "", usagef("%s: %w", flag, err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" || len(key) > most || strings.ContainsFunc(key, notInKey) {
		return "", usagef("%s: %s does not hold one %s and nothing else", flag, quoted(path), what)
	}
	return key, nil
}

// notInKey reports whether r cannot be part of what travels in a header.
func notInKey(r rune) bool { return r <= ' ' || r > '~' }

// given returns the connection flags of this command line, as words.
func (f *connectionFlags) given() []string {
	if f.set == nil {
		return nil
	}
	var words []string
	f.set.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			words = append(words, "--"+flag.Name, flag.Value.String())
		}
	})
	return words
}
