package stage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwners: names that a company gives away belong to the company.
func TestOwners(t *testing.T) {
	for host, want := range map[string]string{
		"example.com":                       "example.com",
		"a.b.example.com.":                  "example.com",
		"www.example.co.uk":                 "example.co.uk",
		"victim.github.io":                  "github.io",
		"github.io":                         "github.io",
		"a.b.duckdns.org":                   "duckdns.org",
		"x.s3.amazonaws.com":                "amazonaws.com",
		"shop.myshopify.com":                "myshopify.com",
		"a.uk.com":                          "uk.com",
		"a.pp.ua":                           "pp.ua",
		"x.compute.amazonaws.com.cn":        "amazonaws.com.cn",
		"a.city.kawasaki.jp":                "city.kawasaki.jp",
		"a.b.ck":                            "a.b.ck",
		"www.ck":                            "www.ck",
		"xn--80aswg.xn--p1ai":               "xn--80aswg.xn--p1ai",
		"co.uk":                             "",
		"com":                               "",
		"localhost":                         "",
		"a.localhost":                       "",
		"a.example":                         "",
		"a.b.no-such-top-level":             "",
		"router.lan":                        "",
		"192.0.2.1":                         "",
		"[2001:db8::1]":                     "",
		"2001:db8::1":                       "",
		"":                                  "",
		".":                                 "",
		"bucket.example.r2.dev":             "r2.dev",
		"a.b.c.elb.us-east-1.amazonaws.com": "amazonaws.com",
	} {
		require.Equal(t, want, Owner(host), host)
	}
}

func TestAddressesAreTheirOwnSites(t *testing.T) {
	for _, host := range []string{"2001:db8::1", "::1", "127.0.0.1"} {
		require.Equal(t, host, siteOf(host))
	}
}
