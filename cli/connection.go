package cli

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"superstep.dev"
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

	set *pflag.FlagSet
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
	into.AddFlagSet(set)
	f.set = set
}

// clientOptions puts a connection together: the configuration file, over it the TEMPORAL_ variables, over both the
// flags.
func (a *app) clientOptions() (client.Options, error) {
	f := &a.conn
	if err := f.check(); err != nil {
		return client.Options{}, err
	}
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{
		ConfigFilePath:    f.config,
		ConfigFileProfile: f.profile,
		EnvLookup:         a.env,
	})
	if err != nil {
		return client.Options{}, configError(err)
	}
	if err := f.apply(&profile); err != nil {
		return client.Options{}, err
	}
	a.keepSecrets(&profile)
	if err := checkAddress(profile.Address); err != nil {
		return client.Options{}, err
	}
	opts, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return client.Options{}, &usageError{message: fmt.Sprintf("the connection's settings: %v", err), err: err}
	}
	opts.DataConverter = a.payload
	return opts, nil
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
			return &usageError{message: fmt.Sprintf("--config: %v", err), err: err}
		}
	}
	return nil
}

// apply lets the flags win.
func (f *connectionFlags) apply(p *envconfig.ClientConfigProfile) error {
	p.Address = first(f.address, p.Address, defaultAddress)
	p.Namespace = first(f.namespace, p.Namespace, client.DefaultNamespace)
	if f.apiKeyFile != "" {
		key, err := readAPIKey(f.apiKeyFile)
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
	p.TLS.ServerName = first(f.tlsServerName, p.TLS.ServerName)
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
		return &usageError{message: fmt.Sprintf("the connection's settings: %v", err), err: err}
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

// first returns the first value that is not empty.
func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
