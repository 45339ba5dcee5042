package files

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
)

// Certificates are the files of a TLS client, which may be renewed while the client runs.
type Certificates struct {
	Cert, Key string // PEM files of the client's certificate, empty for none
	CA        string // PEM file of the authorities that the server's certificate may be of, empty for the system's
	Name      string // the name that the server's certificate must have

	mu   sync.Mutex
	pair *tls.Certificate // as it was last read
	pool *x509.CertPool   // as it was last read
}

// Use makes a TLS configuration read the files at each handshake. A file that cannot be used, for instance because it is half written, is
// left out: the handshake then uses the file's text before.
func (c *Certificates) Use(conf *tls.Config) error {
	if c.Cert != "" {
		if _, err := c.certificate(); err != nil {
			return err
		}
		conf.Certificates = nil
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.certificate() }
	}
	if c.CA == "" || conf.InsecureSkipVerify {
		return nil
	}
	if _, err := c.authorities(); err != nil {
		return err
	}
	conf.RootCAs = nil
	conf.InsecureSkipVerify = true // verify does it, with the authorities of that moment
	conf.VerifyConnection = c.verify
	return nil
}

func (c *Certificates) certificate() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	switch {
	case err == nil:
		c.pair = &pair
	case c.pair == nil:
		return nil, fmt.Errorf("the client certificate: %w", err)
	}
	return c.pair, nil
}

func (c *Certificates) authorities() (*x509.CertPool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	file, err := read(c.CA)
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(file.Text) {
		err = fmt.Errorf("%s has no certificate", c.CA)
	}
	switch {
	case err == nil:
		c.pool = pool
	case c.pool == nil:
		return nil, fmt.Errorf("the certificate authority: %w", err)
	}
	return c.pool, nil
}

// verify checks a server's certificate as crypto/tls does.
func (c *Certificates) verify(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("tls: the server has no certificate")
	}
	pool, err := c.authorities()
	if err != nil {
		return err
	}
	opts := x509.VerifyOptions{Roots: pool, DNSName: c.Name, Intermediates: x509.NewCertPool()}
	for _, between := range s.PeerCertificates[1:] {
		opts.Intermediates.AddCert(between)
	}
	if _, err := s.PeerCertificates[0].Verify(opts); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
	}
	return nil
}
