package usage

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pairs writes a dictionary in short, in the order of its keys.
func pairs(members map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(members)) {
		list = append(list, key+"="+members[key])
	}
	return strings.Join(list, " ")
}

// RFC 9651, 4.2: a dictionary is read whole or not at all.
func TestDictionary(t *testing.T) {
	for field, want := range map[string]string{
		"":                                   "",
		"  ":                                 "",
		"a=y":                                "a=y",
		" a=y ":                              "a=y",
		"a=y,b=n":                            "a=y b=n",
		"a=y \t,\t b=n":                      "a=y b=n",
		"a=y;q=1.5;r,b=n":                    "a=y b=n",
		"*a.b-c_d=y":                         "*a.b-c_d=y",
		"a=n, a=y":                           "a=y",
		"a=n, a=1":                           "a=1",
		"a=n, a":                             "a=",
		"a, b=?0;c, d=n":                     "a= b=?0 d=n",
		"a=-12, b=1.250, c=999999999999999":  "a=-12 b=1.250 c=999999999999999",
		"a=\"x, \\\"y\\\\\", d=y":            "a=\"x, \\\"y\\\\\" d=y",
		"a=:aGk=:, d=y":                      "a=:aGk=: d=y",
		"a=@-1659578233":                     "a=@-1659578233",
		"a=%\"f%c3%bc\"":                     "a=%\"f%c3%bc\"",
		"a=(), b=( 1  tok;x \"s\" );y=2,d=y": "a=() b=( 1  tok;x \"s\" ) d=y",
		"a=tok/en:x":                         "a=tok/en:x",
		"train-ai;allow=n, train-ai=y":       "train-ai=y",
	} {
		got := parseDictionary(field)
		require.NotNil(t, got, "%q", field)
		require.Equal(t, want, pairs(got), "%q", field)
	}
	for _, field := range []string{
		"a=y,", ",a=y", "a=y b=n", "a=y, =?1", "a=y;=?1", "A=y", "a=y, 1=n", "a=", "a = y", "a=y, b=\"",
		"a=y, b=\"\\x\"", "a=y, b=\"\u00e9\"", "a=y, b=(1", "a=y, b=(1,2)", "a=y, b=(1\"2\")",
		"a=y, b=:x", "a=y, b=?2", "a=y, b=1.", "a=y, b=1.2345", "a=y, b=1234567890123.1",
		"a=y, b=1234567890123456", "a=y, b=--1", "a=y, b=@1.5", "a=y, b=%\"%C3\"", "a=y, b=%x", "a=y;",
		"a=y;A=1", "\ta=y", "a=y\n",
	} {
		require.Nil(t, parseDictionary(field), "%q", field)
	}
}

// FuzzDictionary asserts that a parsed field, written and parsed again, is the same.
func FuzzDictionary(f *testing.F) {
	f.Add(`a=y, b=(1 "x, y";z=?0);q=@-1, c;d=%"e", f=:aGk=:, g=-1.5`)
	f.Fuzz(func(t *testing.T, field string) {
		members := parseDictionary(field)
		var written []string
		for key, value := range members {
			if value != "" {
				key += "=" + value
			}
			written = append(written, key)
		}
		again := parseDictionary(strings.Join(written, ", "))
		if !maps.Equal(members, again) {
			t.Errorf("%q is read as %v, and that as %v", field, members, again)
		}
	})
}
