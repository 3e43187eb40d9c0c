package botauth

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A requirement is what a host wants a signature to be like.
type requirement struct {
	label      string
	components []string // as RFC 9421 writes them, such as "@path" in quotes
	keyID      string   // "" is any
	nonce      string   // "" is any
}

// Bounds of what hosts can make a Signer remember. No serious requirement is as long.
const (
	maxHosts      = 1000
	maxField      = 1 << 10 // bytes of Accept-Signature, and of an origin, whose port may begin with zeros
	maxComponents = 32
)

// requirements are what hosts have asked for in Accept-Signature, by origin.
type requirements struct {
	mu   sync.Mutex
	held map[string]requirement
}

// note keeps the first requirement in the fields that can be met.
func (r *requirements) note(origin string, fields []string) {
	latest, ok := parseRequirement(strings.Join(fields, ", "))
	if !ok || len(origin) > maxField {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.held[origin]; !known && len(r.held) >= maxHosts {
		for other := range r.held { // any: a host that is forgotten asks again
			delete(r.held, other)
			break
		}
	}
	if r.held == nil {
		r.held = make(map[string]requirement)
	}
	r.held[origin] = latest
}

// take returns the requirement of an origin. A nonce is used once.
func (r *requirements) take(origin string) (latest requirement, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if latest, found = r.held[origin]; found && latest.nonce != "" {
		later := latest
		later.nonce = ""
		r.held[origin] = later
	}
	return latest, found
}

// The part of the grammar of structured fields (RFC 9651) that requirements use. A field with
// anything else, such as an escaped quote, is not understood.
const (
	sfKey    = `[a-z*][a-z0-9_.*-]*`
	sfString = `"[ !#-\[\]-~]*"`
	sfParam  = `;` + sfKey + `(?:=(?:` + sfString + `|[^;, ()"]+))?`
	sfItem   = sfString + `(?:` + sfParam + `)*`
	sfList   = `\(((?: *` + sfItem + `)*) *\)((?:` + sfParam + `)*)`
)

var (
	memberPattern = regexp.MustCompile(`^[ \t]*(` + sfKey + `)=` + sfList + `[ \t]*(?:,|$)`)
	itemPattern   = regexp.MustCompile(sfItem)
	paramPattern  = regexp.MustCompile(sfParam)
)

// parseRequirement returns the first requirement in a field of Accept-Signature that a Web Bot Auth
// signature with Ed25519 can meet (RFC 9421, 5.1). It takes time linear in the length of the field.
func parseRequirement(field string) (r requirement, ok bool) {
	for len(field) <= maxField {
		member := memberPattern.FindStringSubmatch(field)
		if member == nil {
			break
		}
		field = field[len(member[0]):]
		r = requirement{label: member[1], components: itemPattern.FindAllString(member[2], -1)}
		if r.complete(paramPattern.FindAllString(member[3], -1)) {
			return r, true
		}
	}
	return requirement{}, false
}

// complete adds the parameters and what every signature covers. It reports whether a signature can
// be like that: not of another kind, not of too many components, and without parameters that are
// not known.
func (r *requirement) complete(params []string) bool {
	for _, param := range params {
		name, value, _ := strings.Cut(param[1:], "=")
		text, isString := strings.CutPrefix(strings.TrimSuffix(value, `"`), `"`)
		switch {
		case name == "created", name == "expires": // always there
		case value == `"web-bot-auth"` && name == "tag", value == `"ed25519"` && name == "alg":
		case name == "keyid" && isString:
			r.keyID = text
		case name == "nonce" && isString:
			r.nonce = text
		default:
			return false
		}
	}
	if !slices.Contains(r.components, `"@authority"`) && !slices.Contains(r.components, `"@target-uri"`) {
		r.components = append(r.components, `"@authority"`)
	}
	if len(r.components) > maxComponents {
		return false
	}
	sorted := slices.Sorted(slices.Values(r.components))
	return len(slices.Compact(sorted)) == len(r.components) // each is covered once
}
