package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"
)

// A fortress is a broker with TLS and user authentication, as in production.
type fortress struct {
	url     string
	ca      string // a file
	account nkeys.KeyPair
	dir     string
}

// newFortress starts the broker, with its own certificate authority, operator and account.
func newFortress(t *testing.T) *fortress {
	t.Helper()
	f := &fortress{dir: t.TempDir()}
	ca, caKey := f.authority(t, "ca.pem")
	f.ca = filepath.Join(f.dir, "ca.pem")

	operator, operatorKey := identity(t, nkeys.CreateOperator)
	_, systemKey := identity(t, nkeys.CreateAccount)
	account, accountKey := identity(t, nkeys.CreateAccount)
	f.account = account
	known := &server.MemAccResolver{}
	for _, key := range []string{systemKey, accountKey} {
		claims := jwt.NewAccountClaims(key)
		if key == accountKey {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
				MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1,
			}
		}
		token, err := claims.Encode(operator)
		require.NoError(t, err)
		require.NoError(t, known.Store(key, token))
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
		NoSigs: true, NoLog: true, MaxPayload: 1 << 20,
		TLS: true, TLSTimeout: 5,
		TLSConfig:        &tls.Config{Certificates: []tls.Certificate{certificate(t, ca, caKey)}},
		TrustedOperators: []*jwt.OperatorClaims{jwt.NewOperatorClaims(operatorKey)},
		SystemAccount:    systemKey, AccountResolver: known,
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(20*time.Second))
	f.url = "tls://" + s.Addr().String()
	return f
}

func identity(t *testing.T, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
	t.Helper()
	pair, err := create()
	require.NoError(t, err)
	public, err := pair.PublicKey()
	require.NoError(t, err)
	return pair, public
}

// authority creates a certificate authority and writes its certificate to a file.
func (f *fortress) authority(t *testing.T, file string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, file), data, 0o666))
	ca, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return ca, key
}

// certificate creates the certificate of a broker on this machine.
func certificate(t *testing.T, ca *x509.Certificate, caKey *ecdsa.PrivateKey) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, caKey)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// user writes the credentials of a user who may publish and subscribe to some subjects.
func (f *fortress) user(t *testing.T, name string, subjects ...string) (file string) {
	t.Helper()
	pair, public := identity(t, nkeys.CreateUser)
	claims := jwt.NewUserClaims(public)
	claims.Permissions.Pub.Allow.Add(subjects...)
	claims.Permissions.Sub.Allow.Add(subjects...)
	token, err := claims.Encode(f.account)
	require.NoError(t, err)
	seed, err := pair.Seed()
	require.NoError(t, err)
	creds, err := jwt.FormatUserConfig(token, seed)
	require.NoError(t, err)
	file = filepath.Join(f.dir, name+".creds")
	require.NoError(t, os.WriteFile(file, creds, 0o600))
	return file
}

// needed returns the subjects that OPERATING.md says a user needs.
func needed(t *testing.T) (subjects []string) {
	t.Helper()
	readme, err := os.ReadFile("OPERATING.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(readme), "The user needs")
	require.True(t, ok)
	sentence, _, ok := strings.Cut(rest, ".\n")
	require.True(t, ok)
	for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(sentence, -1) {
		subjects = append(subjects, quoted[1])
	}
	return subjects
}

func without(subjects []string, subject string) (rest []string) {
	for _, s := range subjects {
		if s != subject {
			rest = append(rest, s)
		}
	}
	return rest
}

// TestACrawlOverTLSWithDocumentedPermissions crawls with exactly the permissions that OPERATING.md
// lists, so it fails if one is missing there.
func TestACrawlOverTLSWithDocumentedPermissions(t *testing.T) {
	t.Parallel()
	f := newFortress(t)
	rights := needed(t)
	require.Len(t, rights, 7)
	secured := []string{"-nats", f.url, "-ca", f.ca, "-creds", f.user(t, "crawler", rights...)}
	tr := serveTrial(t, madeUp)
	status, _, log := do(t, append(append([]string{"create"}, secured...), "-replicas", "1",
		"-loopback", "-scope", "any", "-depth", "-1", "-delay", tr.delay.String(), "-parts", "2", "-stream-bytes", "16777216", tr.seeds[0])...)
	require.Zero(t, status, log)
	start(t, nil, append(append([]string{"run"}, secured...), "-commit", "20ms", "-hosts", tr.hosts, "-web-port",
		strconv.Itoa(tr.port), "-dir", t.TempDir())...)
	status, _, log = do(t, append(append([]string{"wait"}, secured...), "-every", "50ms")...)
	require.Zero(t, status, log)
	require.Len(t, tr.pages(), len(tr.reachable()))
	status, out, log := do(t, append([]string{"status"}, secured...)...)
	require.Zero(t, status, log)
	require.Contains(t, out, "fetched")
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	t.Parallel()
	f := newFortress(t)
	other := &fortress{dir: t.TempDir()}
	other.authority(t, "other.pem")
	other.account, _ = identity(t, nkeys.CreateAccount) // unknown to the broker
	rights := needed(t)
	good := f.user(t, "crawler", rights...)
	_, plain := lone(t, t.TempDir(), 0)
	for _, tt := range []struct {
		name, url, ca, creds string
		says                 string
	}{
		{"no authority", f.url, "", good, "-ca"},
		{"another authority", f.url, filepath.Join(other.dir, "other.pem"), good, "-ca"},
		{"a name that the certificate does not have",
			strings.Replace(f.url, "127.0.0.1", "localhost", 1), f.ca, good, "in -nats by a name"},
		{"a missing file", f.url, f.ca, "nobody.creds", "nobody.creds"},
		{"no user", f.url, f.ca, "", "-creds"},
		{"a user of an unknown account", f.url, f.ca, other.user(t, "stranger", rights...), "-creds"},
		{"no permission for the JetStream API", f.url, f.ca,
			f.user(t, "a", without(rights, "$JS.API.>")...), "Brokers for real"},
		{"no permission for replies", f.url, f.ca,
			f.user(t, "b", without(rights, "_INBOX.>")...), "Brokers for real"},
		{"no permission for the table of states", f.url, f.ca,
			f.user(t, "d", without(rights, "$KV.crawl-states.>")...), "Brokers for real"},
		{"no permission for the streams", f.url, f.ca,
			f.user(t, "c", without(rights, "crawl.>")...), "Brokers for real"},
		{"a broker without TLS", strings.Replace(plain, "nats://", "tls://", 1), "", "",
			"do not speak TLS"},
	} {
		args := []string{"create", "-nats", tt.url, "-replicas", "1", "-loopback",
			"-parts", "1", "http://a.test/"}
		if tt.ca != "" {
			args = append([]string{"create", "-ca", tt.ca}, args[1:]...)
		}
		if tt.creds != "" {
			args = append([]string{"create", "-creds", tt.creds}, args[1:]...)
		}
		status, _, log := do(t, args...)
		require.Equal(t, 1, status, "%s: %s", tt.name, log)
		require.Contains(t, log, tt.says, tt.name)
		require.Contains(t, log, "refused", tt.name)
	}
	// Unlike "cluster create", "cluster run" needs the leases as well.
	status, _, log := do(t, "run", "-nats", f.url, "-ca", f.ca, "-dir", t.TempDir(),
		"-creds", f.user(t, "e", without(rights, "$KV.crawl-leases.>")...))
	require.Equal(t, 1, status, log)
	require.Contains(t, log, "Brokers for real")
	// This user may connect, but has no permission to read the status.
	status, _, log = do(t, "status", "-nats", f.url, "-ca", f.ca,
		"-creds", f.user(t, "f", append(without(rights, "$JS.API.>"), "$JS.API.INFO")...))
	require.Equal(t, 1, status, log)
	require.Contains(t, log, "Brokers for real")
}
