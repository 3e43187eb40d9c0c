package clients

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"
)

// A suite is the tests of a package of a client.
type suite struct {
	module, dir string // dir is that of the package in the module
	clause      string // the package of the tests
	alone       string // matches tests that listen on a fixed port, as one process at a time can
	// clock matches tests that fail on a busy machine, with and without the layers, as they allow
	// milliseconds or a second. They run, and their results are not compared.
	clock string
	// noRules says that no server has a robots.txt. The servers of many tests count requests, or
	// answer all of them alike, and so cannot be asked for one.
	noRules bool
	differ  []difference
}

// A difference is a test that has another result over some of the layers.
type difference struct {
	test, over string // over names stacks
	why        string
}

// TestSuites runs the tests of clients as their authors wrote them, without the layers and over
// each of stacks. The results must be the same, except for the differences of the suite.
//
// Tests often make the transport of a client themselves, where no file beside them can put anything
// under it. So their programs are built with a net/http in which Transport.RoundTrip asks an
// underlay first.
func TestSuites(t *testing.T) {
	if testing.Short() {
		t.Skip("the tests of resty sleep for more than a minute")
	}
	overlay := patchNetHTTP(t)
	rows := append([]string{""}, stacks...)
	programs, reports := make([]program, len(suites)), make([]map[string]report, len(suites))
	for i, s := range suites {
		programs[i] = s.build(t, overlay)
	}
	var running sync.WaitGroup
	for i, p := range programs {
		reports[i] = map[string]report{}
		var mu sync.Mutex
		for _, layers := range rows { // all at the same time, since their tests mostly sleep
			running.Go(func() {
				r := p.runAll(layers)
				mu.Lock()
				defer mu.Unlock()
				reports[i][layers] = r
			})
		}
	}
	running.Wait()
	out := new(strings.Builder)
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "\n| tests of\t| pass\t| over "+strings.Join(stacks, "\t| ")+"\t|")
	for i, p := range programs {
		plain := reports[i][""]
		require.NoError(t, plain.err, p.module)
		require.NotZero(t, plain.passed(), p.module)
		fmt.Fprintf(table, "| %s\t| %d\t", filepath.Join(p.module, p.dir), plain.passed())
		for _, layers := range stacks {
			r := reports[i][layers]
			require.NoError(t, r.err, "%s over %s", p.module, layers)
			require.NotZero(t, r.requests, "the layers are not under the tests of %s", p.module)
			p.compare(t, layers, plain, r)
			fmt.Fprintf(table, "| %d\t", r.passed())
		}
		fmt.Fprintln(table, "|")
	}
	require.NoError(t, table.Flush())
	t.Log(out)
}

// patchNetHTTP returns a file for the option -overlay of the go command. The net/http with it has a
// variable Underlay.
func patchNetHTTP(t *testing.T) string {
	t.Helper()
	const call = "return t.roundTrip(req)"
	original := filepath.Join(goCommand(t, "env", "GOROOT"), "src", "net", "http", "roundtrip.go")
	text, err := os.ReadFile(original)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), call), "net/http has changed")
	patched := strings.Replace(string(text), call, `if Underlay != nil {
		if layers := Underlay(t, req); layers != nil {
			return layers.RoundTrip(req)
		}
	}
	`+call, 1) + `
// Underlay returns the RoundTripper in place of a transport, or nil.
var Underlay func(*Transport, *Request) RoundTripper
`
	dir := t.TempDir()
	replacement := filepath.Join(dir, "roundtrip.go")
	require.NoError(t, os.WriteFile(replacement, []byte(patched), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	return file
}

// goCommand runs the go command, and returns what it prints.
func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stderr = new(strings.Builder)
	out, err := cmd.Output()
	require.NoError(t, err, "go %s: %s", strings.Join(args, " "), cmd.Stderr)
	return strings.TrimSpace(string(out))
}

// connect is added to underlay_test.go in the package under test.
const connect = `
func init() {
	layers, dir := os.Getenv("UNDERLAY"), os.Getenv("UNDERLAY_DIR")
	u, err := newUnderlay(layers, dir, os.Getenv("UNDERLAY_RULES") == "")
	if err != nil {
		panic(err)
	}
	http.Underlay = u.of
	if net.DefaultResolver, err = noNames(); err != nil {
		panic(err)
	}
}
`

// A program is the test program of a suite.
type program struct {
	suite
	source string // the package in the module cache
	file   string
}

// build compiles the tests of a suite, in a copy of the module, with the versions in our go.mod.
func (s suite) build(t *testing.T, overlay string) program {
	t.Helper()
	var module struct{ Dir string }
	downloaded := goCommand(t, "mod", "download", "-json", s.module)
	require.NoError(t, json.Unmarshal([]byte(downloaded), &module))
	dir := t.TempDir()
	changed := filepath.Join(dir, "module")
	require.NoError(t, os.CopyFS(changed, os.DirFS(module.Dir)))
	text, err := os.ReadFile("underlay_test.go")
	require.NoError(t, err)
	added := strings.Replace(string(text), "package clients\n", "package "+s.clause+"\n", 1) + connect
	require.NoError(t, os.WriteFile(
		filepath.Join(changed, s.dir, "underlay_test.go"), []byte(added), 0o600))
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	modfile := filepath.Join(dir, "go.mod")
	goCommand(t, "mod", "edit", "-replace="+s.module+"="+changed, modfile)
	p := program{s, filepath.Join(module.Dir, s.dir), filepath.Join(dir, "tests")}
	goCommand(t, "test", "-c", "-overlay="+overlay, "-modfile="+modfile, "-o="+p.file,
		filepath.ToSlash(filepath.Join(s.module, s.dir)))
	return p
}

// A report is what happened to the tests of a program.
type report struct {
	tests    map[string]result
	requests int64 // to the layers
	err      error // why there are no results
}

type result struct{ action, output string }

func (r report) passed() (n int) {
	for _, test := range r.tests {
		if test.action == "pass" {
			n++
		}
	}
	return n
}

var fixedPorts sync.Mutex

// runAll runs all tests over some layers.
func (p program) runAll(layers string) report {
	r := p.run(layers, "-test.skip="+p.alone)
	if r.err != nil || p.alone == "" {
		return r
	}
	fixedPorts.Lock()
	defer fixedPorts.Unlock()
	more := p.run(layers, "-test.run="+p.alone)
	maps.Copy(r.tests, more.tests)
	return report{r.tests, r.requests + more.requests, more.err}
}

// run runs tests over some layers, in directories of their own.
func (p program) run(layers, which string) (r report) {
	dir, err := os.MkdirTemp("", "suite") // with a short name, which sockets need
	if err != nil {
		return report{err: err}
	}
	defer func() { r.err = errors.Join(r.err, os.RemoveAll(dir)) }()
	cmd := exec.Command("go", "tool", "test2json",
		p.file, "-test.v=test2json", "-test.timeout=3m", which)
	cmd.Dir = filepath.Join(dir, "source")
	if err := os.CopyFS(cmd.Dir, os.DirFS(p.source)); err != nil {
		return report{err: err}
	}
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "UNDERLAY_DIR="+dir, "UNDERLAY="+layers)
	if !p.noRules {
		cmd.Env = append(cmd.Env, "UNDERLAY_RULES=1")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return report{err: err}
	}
	if err := cmd.Start(); err != nil {
		return report{err: err}
	}
	r.tests, r.err = results(out)
	var failed *exec.ExitError // of some test, perhaps
	if err := cmd.Wait(); err != nil && !errors.As(err, &failed) {
		r.err = errors.Join(r.err, err)
	}
	if layers != "" {
		info, err := os.Stat(filepath.Join(dir, "passed"))
		if err != nil {
			return report{err: errors.Join(r.err, err)}
		}
		r.requests = info.Size()
	}
	return r
}

const maxOutput = 4 << 10 // of each test

// results reads the output of test2json.
func results(out io.Reader) (map[string]result, error) {
	tests := map[string]result{}
	for decoder := json.NewDecoder(out); ; {
		var event struct{ Action, Test, Output string }
		if err := decoder.Decode(&event); errors.Is(err, io.EOF) {
			return tests, nil
		} else if err != nil {
			_, _ = io.Copy(io.Discard, out)
			return nil, err
		}
		test := tests[event.Test]
		switch event.Action {
		case "output":
			if len(test.output) < maxOutput {
				test.output += event.Output
			}
		case "pass", "fail", "skip":
			test.action = event.Action
		}
		if event.Test != "" {
			tests[event.Test] = test
		}
	}
}

// compare checks that the results over some layers differ from plain only as the suite says.
func (p program) compare(t *testing.T, layers string, plain, r report) {
	t.Helper()
	for _, test := range p.unexpected(layers, plain, r) {
		without, with := plain.tests[test], r.tests[test]
		switch {
		case without.action == "":
			t.Errorf("%s over %s: there is no test %s", p.module, layers, test)
		case without.action == with.action:
			t.Errorf("%s over %s: %s does not differ any more", p.module, layers, test)
		default:
			t.Errorf("%s over %s: %s: %q, and %q without\n%s", p.module, layers, test, with.action,
				without.action, with.output)
		}
	}
}

// unexpected returns the tests with another result over some layers that are not among the
// differences of the suite, and the differences that are none. Of a test and its subtests, only the
// latter count. Tests that judge by the clock do not, and one that fails without the layers proves
// nothing about them: a busy machine is enough for some.
func (p program) unexpected(layers string, plain, r report) []string {
	all := maps.Clone(plain.tests)
	maps.Copy(all, r.tests)
	differing := map[string]bool{}
	clock := regexp.MustCompile(cmp.Or(p.clock, "^$"))
	for test := range all {
		name, _, _ := strings.Cut(test, "/")
		without := plain.tests[test].action
		if !clock.MatchString(name) && without != "fail" && without != r.tests[test].action {
			differing[test] = true
		}
	}
	for test := range differing {
		for parent := range differing {
			if strings.HasPrefix(test, parent+"/") {
				delete(differing, parent)
			}
		}
	}
	for _, d := range p.differ {
		if !slices.Contains(strings.Fields(d.over), layers) {
			continue
		}
		if differing[d.test] {
			delete(differing, d.test)
		} else {
			differing[d.test] = true
		}
	}
	return slices.Sorted(maps.Keys(differing))
}

func TestUnexpected(t *testing.T) {
	of := func(actions ...string) report {
		tests := map[string]result{}
		for i := 0; i < len(actions); i += 2 {
			tests[actions[i]] = result{action: actions[i+1]}
		}
		return report{tests: tests}
	}
	p := program{suite: suite{clock: "^Measured$", differ: []difference{
		{"Known", "fetch all", "known"}, {"Mended/now", "fetch", "once known"},
	}}}
	plain := of("Same", "fail", "Known", "pass", "Mended", "pass", "Mended/now", "pass",
		"Parent", "pass", "Parent/a", "pass", "Parent/a/b", "pass", "Alone", "fail", "Gone", "skip",
		"Measured", "fail", "Measured/once", "pass")
	over := of("Same", "fail", "Known", "fail", "Mended", "pass", "Mended/now", "pass",
		"Parent", "fail", "Parent/a", "fail", "Parent/a/b", "fail", "Alone", "pass",
		"Measured", "pass", "Measured/once", "fail")
	unlisted := []string{"Gone", "Parent/a/b"} // not Alone: without layers it fails
	require.Equal(t, unlisted, p.unexpected("all", plain, over))
	require.ElementsMatch(t, append(unlisted, "Mended/now"), p.unexpected("fetch", plain, over))
	require.Equal(t, []string{"Known", "Mended/now"}, p.unexpected("fetch", over, over))
	require.Empty(t, p.unexpected("archivehttp", plain, plain))
}

// A patched transport does what Transport.RoundTrip does in a net/http with a patch.
type patched struct {
	*http.Transport
	u *underlay
}

func (p patched) RoundTrip(r *http.Request) (*http.Response, error) {
	if layers := p.u.of(p.Transport, r); layers != nil {
		return layers.RoundTrip(r)
	}
	return p.Transport.RoundTrip(r)
}

// TestUnderlay checks that each of stacks consists of the layers that its name says.
func TestUnderlay(t *testing.T) {
	const own, guarded = " Go-http-client/1.1", " spinneret (loopback)"
	for layers, want := range map[string]struct {
		requests []string
		archived int
	}{
		"":              {requests: []string{"/page" + own}},
		"robotshttp":    {requests: []string{"/robots.txt" + own, "/page" + own}},
		"schedulerhttp": {requests: []string{"/page" + own}},
		"archivehttp":   {requests: []string{"/page" + own}, archived: 1},
		"fetch":         {requests: []string{"/page" + guarded}},
		"all":           {requests: []string{"/robots.txt" + guarded, "/page" + guarded}, archived: 2},
	} {
		for _, noRules := range []bool{false, true} {
			var requests []string
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests = append(requests, r.URL.Path+" "+r.UserAgent())
			}))
			u, err := newUnderlay(layers, t.TempDir(), noRules)
			require.NoError(t, err)
			client := &http.Client{Transport: patched{new(http.Transport), u}}
			resp, err := client.Get(site.URL + "/page")
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			site.Close()
			if n := len(want.requests); noRules && n == 2 {
				want.requests, want.archived = want.requests[1:], max(want.archived-1, 0)
			}
			require.Equal(t, want.requests, requests, layers)
			if u.kept == nil {
				require.Empty(t, layers)
				continue
			}
			var archived int
			for _, err := range u.kept.All() {
				require.NoError(t, err)
				archived++
			}
			require.Equal(t, want.archived, archived, layers)
			require.NoError(t, u.kept.Close())
			require.NoError(t, u.passed.Close())
		}
	}
}

func TestNoNames(t *testing.T) {
	resolver, err := noNames()
	require.NoError(t, err)
	_, err = resolver.LookupNetIP(t.Context(), "ip", "example.org")
	var failed *net.DNSError
	require.ErrorAs(t, err, &failed)
	require.True(t, failed.IsNotFound)
}
