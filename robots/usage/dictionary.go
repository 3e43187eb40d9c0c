package usage

import (
	"regexp"
	"strings"
	"sync"
)

// The grammar of structured field values (RFC 9651, 3 and 4.2). Package regexp matches in linear
// time, so a hostile field costs no more than its length.
const (
	key    = `[a-z*][a-z0-9_\-.*]*`
	number = `-?(?:[0-9]{1,12}\.[0-9]{1,3}|[0-9]{1,15})`
	text   = `"(?:[ !#-\[\]-~]|\\["\\])*"`
	token  = "[A-Za-z*][A-Za-z0-9!#$%&'*+\\-.^_`|~:/]*"
	bytes  = `:[A-Za-z0-9+/=]*:`
	date   = `@-?[0-9]{1,15}`
	shown  = `%"(?:[ !#$&-~]|%[0-9a-f]{2})*"`
	item   = `(?:` + number + `|` + text + `|` + token + `|` + bytes + `|\?[01]|` + date +
		`|` + shown + `)`
	params = `(?:; *` + key + `(?:=` + item + `)?)*`
	inner  = `\( *(?:` + item + params + `(?: +` + item + params + `)* *)?\)`
	member = `(` + key + `)(?:=(` + item + `|` + inner + `))?` + params
	comma  = `[ \t]*,[ \t]*`
)

// expressions are compiled when they are first used, which takes about a millisecond.
var expressions = sync.OnceValue(func() (e struct{ dictionary, member *regexp.Regexp }) {
	e.dictionary = regexp.MustCompile(`^ *(?:` + member + `(?:` + comma + member + `)*)? *$`)
	e.member = regexp.MustCompile(`^` + member)
	return e
})

// parseDictionary returns the members of a dictionary as written, without parameters. If a key is
// repeated, the last member counts. A field with an error anywhere has no members (RFC 9651, 4.2).
func parseDictionary(field string) map[string]string {
	if !expressions().dictionary.MatchString(field) {
		return nil
	}
	members := make(map[string]string)
	for field = strings.Trim(field, " "); field != ""; field = strings.TrimLeft(field, ", \t") {
		m := expressions().member.FindStringSubmatch(field)
		members[m[1]] = m[2]
		field = field[len(m[0]):]
	}
	return members
}
