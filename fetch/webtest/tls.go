package webtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"sync"
	"time"
)

// authority makes certificates for the hosts of one web on demand. It is safe for concurrent use.
type authority struct {
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey // of all hosts, too
	roots *x509.CertPool

	mu    sync.Mutex
	hosts map[string]*tls.Certificate
}

// The certificates are valid at any time that a test may simulate.
var (
	notBefore = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = time.Date(2990, 1, 1, 0, 0, 0, 0, time.UTC)
)

func newAuthority() *authority {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // the curve is known
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "virtual web"},
		NotBefore: notBefore, NotAfter: notAfter,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a := &authority{key: key, roots: x509.NewCertPool(), hosts: make(map[string]*tls.Certificate)}
	a.cert = a.sign(template, template)
	a.roots.AddCert(a.cert)
	return a
}

// sign requires complete templates, so that it cannot fail.
func (a *authority) sign(template, parent *x509.Certificate) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &a.key.PublicKey, a.key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return cert
}

// certificate returns that of the host.
func (a *authority) certificate(host string) *tls.Certificate {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.hosts[host]; ok {
		return c
	}
	cert := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(int64(len(a.hosts)) + 2), DNSNames: []string{host},
		NotBefore: notBefore, NotAfter: notAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.cert)
	c := &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: a.key, Leaf: cert}
	a.hosts[host] = c
	return c
}

// tlsConfig presents the certificate of the host that a client asks for.
func (w *Web) tlsConfig() *tls.Config {
	return &tls.Config{
		// net/http does not add them to the configuration of connections that it has not opened.
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			h, ok := w.Host(hello.ServerName)
			if !ok {
				return w.authority.certificate("unknown.invalid"), nil
			}
			return w.authority.certificate(h.Name), nil
		},
	}
}
