package cockpit

import (
	"bufio"
	"cmp"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spinneret-go/spinneret/dedupe/weburl"
	"github.com/spinneret-go/spinneret/examples/internal/stage"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/botauth"
	"github.com/spinneret-go/spinneret/fetch/brotli"
	"github.com/spinneret-go/spinneret/fetch/cookies"
)

// secrets are the fields that must not reach other hosts, nor the archive.
var secrets = []string{"Authorization", "Cookie", "Proxy-Authorization"}

// addHeader adds one field, of all requests or of those to a host.
func (c *Config) addHeader(text string) error {
	name, value, found := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	if !found || name == "" {
		return fmt.Errorf("%q is not a field such as \"Accept-Language: de\"", text)
	}
	host, field, scoped := strings.Cut(name, " ")
	if !scoped {
		host, field = "", name
	}
	field = http.CanonicalHeaderKey(strings.TrimSpace(field))
	switch {
	case field == "User-Agent":
		return errors.New("-agent and -contact set the User-Agent, so that robots.txt applies and owners can reach you")
	case !scoped && slices.Contains(secrets, field):
		return fmt.Errorf("name the host that may see it: -header 'www.example.org %s: …' (with its subdomains)", field)
	case !scoped:
		c.Header = withField(c.Header, field, value)
		return nil
	}
	if c.HostHeader == nil {
		c.HostHeader = map[string]http.Header{}
	}
	host, err := stage.HostName(host)
	if err != nil {
		return err
	}
	c.HostHeader[host] = withField(c.HostHeader[host], field, value)
	return nil
}

func withField(h http.Header, field, value string) http.Header {
	if h == nil {
		h = http.Header{}
	}
	h.Add(field, strings.TrimSpace(value))
	return h
}

// inheritFields makes the fields of a host those of its subdomains that have some of their own, too.
func (c *Config) inheritFields() {
	for host, fields := range c.HostHeader {
		for _, above, dot := strings.Cut(host, "."); dot; _, above, dot = strings.Cut(above, ".") {
			for name, values := range c.HostHeader[above] {
				if _, own := fields[name]; !own {
					fields[name] = values
				}
			}
		}
	}
}

// Redacts reports whether the archive does not get the value of a field.
func (c *Config) Redacts(field string, secret bool) bool {
	for _, header := range c.HostHeader {
		secret = secret || header.Get(field) != ""
	}
	return secret && !c.KeepSecrets
}

// hostFields sends the fields of hosts. It is safe for concurrent use.
type hostFields struct {
	of   map[string]http.Header
	next http.RoundTripper
}

func (f hostFields) RoundTrip(r *http.Request) (*http.Response, error) {
	if fields, found := stage.ForHost(f.of, strings.ToLower(r.URL.Hostname())); found {
		r = r.Clone(r.Context())
		maps.Copy(r.Header, fields)
	}
	return f.next.RoundTrip(r)
}

// readNameServers reads addresses of name servers, with or without ports.
func (c *Config) readNameServers(list string) error {
	for _, text := range listed(list) {
		server, err := netip.ParseAddrPort(text)
		if addr, addrErr := netip.ParseAddr(text); addrErr == nil {
			server, err = netip.AddrPortFrom(addr, 53), nil
		}
		if err != nil {
			return errors.New("want an IP address, with or without a port")
		}
		c.NameServers = append(c.NameServers, server)
	}
	return nil
}

// ReadOverrides reads the settings of single hosts. It also works while a crawl runs.
func (c *Config) ReadOverrides() error {
	if c.Overrides == nil {
		c.Overrides = new(stage.Overrides)
	}
	return ReadFile(c.OverrideFile, func(f io.Reader) error {
		if err := c.Overrides.Reload(f); err != nil {
			return fmt.Errorf("overrides %s: %w", c.OverrideFile, err)
		}
		return nil
	})
}

// readGroups reads which hosts share a delay: the hosts of a domain, or of a line in a file.
func (c *Config) readGroups(name string) error {
	switch name {
	case "":
		return nil
	case "domain":
		c.Group = func(host string) string { return weburl.Site("http://" + host + "/") }
		return nil
	}
	groups := map[string]string{} // by host or domain, the first of the line
	c.Group = func(host string) string {
		group, _ := stage.ForHost(groups, host)
		return group
	}
	return eachLine(name, func(text string) error {
		hosts := strings.Fields(text)
		for _, host := range hosts {
			name, err := stage.HostName(host)
			if err != nil {
				return err
			}
			groups[name] = hosts[0]
		}
		return nil
	})
}

// readShared reads ranges of addresses.
func (c *Config) readShared(name string) error {
	return eachLine(name, func(text string) error {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("%q is not a range such as 192.0.2.0/24", text)
		}
		c.Shared = append(c.Shared, prefix.Masked())
		return nil
	})
}

// eachLine yields the lines of a file without comments and empty lines.
func eachLine(name string, use func(text string) error) error {
	return ReadFile(name, func(f io.Reader) error {
		lines := bufio.NewScanner(f)
		for n := 1; lines.Scan(); n++ {
			text, _, _ := strings.Cut(lines.Text(), "#")
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			if err := use(text); err != nil {
				return fmt.Errorf("%s:%d: %w", name, n, err)
			}
		}
		return lines.Err()
	})
}

// bodyShare is the share of the memory for all large pages together: a quarter, as for the buffers
// of the pages' store.
const bodyShare = 4

// FetchOptions returns the options of the client for a network. Its requests need an address: see
// fetch.Request.Addr.
func (c *Config) FetchOptions(web stage.Network) fetch.Options {
	o := fetch.Options{
		UserAgent: c.UserAgent(),
		Reach:     c.Bounds,
		Timeout:   c.Timeout,
		MaxBody:   c.MaxBody,
		MaxMemory: cmp.Or(c.Memory/bodyShare, -1),
		Resolve:   stage.NoLookup,
		Dial:      web.Dial,
		TLSConfig: &tls.Config{RootCAs: web.Roots},
		Brotli:    brotli.New,
		Header:    c.Header,
		Jar:       c.Jar,
		Proxy:     c.Proxy,
		HTTP1:     c.HTTP1,
	}
	if c.Identity != nil {
		o.Wrap = c.Identity.RoundTripper
	}
	if sign := o.Wrap; len(c.HostHeader) > 0 {
		o.Wrap = func(next http.RoundTripper) http.RoundTripper {
			if sign != nil {
				next = sign(next)
			}
			return hostFields{c.HostHeader, next}
		}
	}
	return o
}

// readCookies reads the cookies that the crawl starts with.
func (c *Config) readCookies(name string) error {
	if name == "" {
		return nil
	}
	jar := new(cookies.Jar)
	c.Jar = jar
	return ReadFile(name, jar.Load)
}

// agentForms are the values of -identity-form.
var agentForms = map[string]botauth.Form{
	"url": botauth.DirectoryURL, "origin": botauth.Origin, "string": botauth.OriginString,
}

// readIdentity reads the key that signs requests.
func (c *Config) readIdentity(name, form string) error {
	if name == "" {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("-identity: %w (openssl genpkey -algorithm ed25519 creates one)", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("-identity %s: no PEM block", name)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return errors.Join(fmt.Errorf("-identity %s: no Ed25519 key in PKCS #8", name), err)
	}
	u, err := url.Parse(c.Contact)
	if err != nil || u.Scheme != "https" {
		return errors.New("-identity: want an https -contact, on whose host sites look for the public key")
	}
	opts := botauth.Options{Agent: "https://" + u.Host}
	if opts.Form, ok = agentForms[form]; !ok {
		return fmt.Errorf("-identity-form %q: want url, origin or string", form)
	}
	c.Identity, err = botauth.New(opts, botauth.Key{Private: key})
	return err
}
