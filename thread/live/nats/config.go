package nats

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"
)

// Config says which server, and how what is published is encoded.
type Config struct {
	// URL is nats://HOST:PORT, or tls://HOST:PORT for TLS, with several addresses as HOST:PORT,HOST:PORT. Parameters behind a question
	// mark are creds=FILE (a NATS credentials file), ca=FILE, cert=FILE and key=FILE (PEM), storage=file or memory (of the stream,
	// if it is made here), and id=NAME (that the server must have). A URL has no password.
	URL string
	// Namespace is the Temporal namespace of the threads: those of two namespaces may have the same id. "" is Temporal's default.
	Namespace string
	// DataConverter encodes what is published, as that of workers and clients does what is stored; nil for Temporal's default.
	DataConverter converter.DataConverter
	// Logger is told when the server is away and when it is there again, once each; nil for nobody.
	Logger *zap.Logger
}

// ErrBadURL is wrapped by errors that say what is wrong with Config.URL.
var ErrBadURL = errors.New("not the address of a server of live tokens, such as nats://127.0.0.1:4222")

// announcedKey is the entry of a namespace's data that says where live tokens go.
const announcedKey = "superstep.live"

// Announced returns the URL that a namespace names, "" when it names none. The project's devserver names the NATS server within itself,
// on loopback: programs of its machine may give what it names to [Open]. Commands, workers and servers of package cli do.
//
// Errors: what the server says when it cannot be asked. A namespace that is not there, or that may not be asked about, names none.
func Announced(ctx context.Context, c client.Client, namespace string) (address string, err error) {
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	var absent *serviceerror.NamespaceNotFound
	var denied *serviceerror.PermissionDenied
	switch {
	case errors.As(err, &absent), errors.As(err, &denied):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("ask where the live tokens of namespace %s go: %w", namespace, err)
	}
	return described.GetNamespaceInfo().GetData()[announcedKey], nil
}

// place is a URL that was read.
type place struct {
	servers string // for nats.Connect
	id      string
	storage jetstream.StorageType
	options []nats.Option
}

// maxURL bounds the text of an address, in bytes.
const maxURL = 4 << 10

// parse reads the text of a URL. Its errors repeat nothing of a text that may hold a password.
func parse(text string) (p place, err error) {
	refuse := func(format string, args ...any) (place, error) {
		return place{}, fmt.Errorf("%w: %s", ErrBadURL, fmt.Sprintf(format, args...))
	}
	if len(text) > maxURL {
		return refuse("it has more than %d bytes", maxURL)
	}
	servers, query, _ := strings.Cut(text, "?")
	scheme, hosts, found := strings.Cut(servers, "://")
	switch {
	case !found || scheme != "nats" && scheme != "tls":
		return refuse("it begins with neither nats:// nor tls://")
	case strings.ContainsAny(hosts, "@/# \t\n"):
		return refuse("behind %s:// stand addresses and nothing else; credentials are in a file, named by creds=FILE", scheme)
	}
	var all []string
	for host := range strings.SplitSeq(hosts, ",") {
		u, err := url.Parse(scheme + "://" + host)
		if err != nil || u.Hostname() == "" {
			return refuse("%.100q is no HOST:PORT", host)
		}
		all = append(all, u.String())
	}
	p.servers = strings.Join(all, ",")
	return p.with(query, refuse)
}

// with adds what the parameters say.
func (p place) with(query string, refuse func(string, ...any) (place, error)) (place, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return refuse("its parameters cannot be read")
	}
	one := map[string]string{}
	for name, all := range values {
		switch name {
		case "creds", "ca", "cert", "key", "storage", "id":
		default:
			return refuse("there is no parameter %.100q: there are creds, ca, cert, key, storage and id", name)
		}
		if len(all) != 1 || all[0] == "" {
			return refuse("the parameter %s has no value, or several", name)
		}
		one[name] = all[0]
	}
	p.id = one["id"]
	switch one["storage"] {
	case "", "file":
		p.storage = jetstream.FileStorage
	case "memory":
		p.storage = jetstream.MemoryStorage
	default:
		return refuse("storage is file or memory, not %.100q", one["storage"])
	}
	if (one["cert"] == "") != (one["key"] == "") {
		return refuse("cert and key go together")
	}
	for _, file := range []struct {
		path   string
		option func() nats.Option
	}{
		{one["creds"], func() nats.Option { return nats.UserCredentials(one["creds"]) }},
		{one["ca"], func() nats.Option { return nats.RootCAs(one["ca"]) }},
		{one["cert"], func() nats.Option { return nats.ClientCert(one["cert"], one["key"]) }},
	} {
		if file.path != "" {
			p.options = append(p.options, file.option())
		}
	}
	return p, nil
}
