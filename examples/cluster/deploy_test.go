package main

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// TestTheFilesForOperationWork crawls with the broker configuration in deploy, without the routes
// to the other two brokers. Each user can do its work, and only the operator can control the crawl.
func TestTheFilesForOperationWork(t *testing.T) {
	f := &fortress{dir: t.TempDir()}
	ca, caKey := f.authority(t, "ca.pem")
	cert := certificate(t, ca, caKey)
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: cert.Certificate[0]},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: key},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(f.dir, name), pem.EncodeToMemory(block), 0o600))
	}
	for name, value := range map[string]string{
		"CRAWL_STORE": t.TempDir(), "CRAWL_CERT": filepath.Join(f.dir, "cert.pem"),
		"CRAWL_KEY": filepath.Join(f.dir, "key.pem"), "CRAWL_CA": filepath.Join(f.dir, "ca.pem"),
		"CRAWL_WORKER": "ww", "CRAWL_OPERATOR": "oo", "CRAWL_VIEWER": "vv", "CRAWL_ROUTE": "rr",
	} {
		t.Setenv(name, value)
	}
	o, err := server.ProcessConfigFile("deploy/nats.conf")
	require.NoError(t, err)
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	o.Cluster, o.Routes = server.ClusterOpts{}, nil
	s, err := server.NewServer(o)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(20*time.Second))
	as := func(verb, user string, more ...string) []string {
		url := "tls://" + user + ":" + user[:1] + user[:1] + "@" + s.Addr().String()
		return append([]string{verb, "-nats", url, "-ca", filepath.Join(f.dir, "ca.pem")}, more...)
	}
	tr := serveTrial(t, madeUp)
	status, _, log := do(t, as("create", "operator", "-replicas", "1", "-loopback", "-scope", "any",
		"-depth", "-1", "-delay", tr.delay.String(), "-retries", "-1", "-parts", "2", "-stream-bytes", "16777216", tr.seeds[0])...)
	require.Zero(t, status, log)
	run := start(t, nil, as("run", "worker", "-log", "error", "-name", "p", "-commit", "20ms", "-hosts", tr.hosts, "-web-port",
		strconv.Itoa(tr.port), "-dir", t.TempDir())...)
	status, _, log = do(t, as("wait", "viewer", "-every", "50ms")...)
	require.Zero(t, status, log)
	require.Len(t, tr.pages(), len(tr.reachable()))
	status, out, log := do(t, as("status", "viewer")...)
	require.Zero(t, status, log)
	require.Contains(t, out, "nothing is left to fetch")
	for _, user := range []string{"worker", "viewer"} {
		status, _, log = do(t, as("pause", user)...)
		require.Equal(t, 1, status, "%s may not control the crawl", user)
		require.Contains(t, log, "permissions")
	}
	status, _, log = do(t, as("drain", "operator")...)
	require.Zero(t, status, log)
	require.NoError(t, run.Wait())
}

// TestAlertsNameExistingMetrics searches the source that writes metrics for each name.
func TestAlertsNameExistingMetrics(t *testing.T) {
	alerts, err := os.ReadFile("deploy/alerts.yml")
	require.NoError(t, err)
	source, err := os.ReadFile("metrics.go")
	require.NoError(t, err)
	names := regexp.MustCompile(`cluster_([a-z_]+)`).FindAllStringSubmatch(string(alerts), -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.Contains(t, string(source), `"`+strings.TrimPrefix(name[1], "partition_")+`"`, name[0])
	}
}

// TestTheUnitUsesExistingFlags checks the command line of the systemd unit.
func TestTheUnitUsesExistingFlags(t *testing.T) {
	unit, err := os.ReadFile("deploy/cluster-run.service")
	require.NoError(t, err)
	_, line, ok := strings.Cut(string(unit), "ExecStart=/usr/local/bin/cluster ")
	require.True(t, ok)
	line, _, _ = strings.Cut(line, "\n")
	_, _, help := do(t, "run", "-h")
	for _, word := range strings.Fields(line) {
		if strings.HasPrefix(word, "-") {
			require.Contains(t, help, "  "+word, "flag of the unit")
		}
	}
}
