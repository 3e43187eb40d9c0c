package botauth

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A wish is what a host wants a signature to be like.
type wish struct {
	label      string
	components []string // as RFC 9421 writes them, such as "@path" in quotes
	keyID      string   // "" is any
	nonce      string   // "" is any
}

// Bounds of what hosts can make a Signer remember. No serious wish is as long.
const (
	maxWishes = 1000
	maxWish   = 1 << 10 // bytes of Accept-Signature
)

// wishes are what hosts have asked for in Accept-Signature, by origin.
type wishes struct {
	mu   sync.Mutex
	held map[string]wish
}

// note keeps the first wish in fields that can be granted.
func (w *wishes) note(origin string, fields []string) {
	wanted, ok := parseWish(strings.Join(fields, ", "))
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.held[origin]; !known && len(w.held) >= maxWishes {
		for other := range w.held { // any: a host that is forgotten asks again
			delete(w.held, other)
			break
		}
	}
	if w.held == nil {
		w.held = make(map[string]wish)
	}
	w.held[origin] = wanted
}

// take returns the wish of an origin. A nonce is used once.
func (w *wishes) take(origin string) (wanted wish, found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wanted, found = w.held[origin]; found && wanted.nonce != "" {
		later := wanted
		later.nonce = ""
		w.held[origin] = later
	}
	return wanted, found
}

// The part of the grammar of structured fields (RFC 9651) that wishes have. Everything else, such
// as an escaped quote, makes a field one that is not understood.
const (
	sfKey    = `[a-z*][a-z0-9_.*-]*`
	sfString = `"[ !#-\[\]-~]*"`
	sfParam  = `;` + sfKey + `(?:=(?:` + sfString + `|[^;, ()"]+))?`
	sfItem   = sfString + `(?:` + sfParam + `)*`
	sfList   = `\(((?: *` + sfItem + `)*) *\)((?:` + sfParam + `)*)`
)

var (
	wishMember = regexp.MustCompile(`^[ \t]*(` + sfKey + `)=` + sfList + `[ \t]*(?:,|$)`)
	wishItem   = regexp.MustCompile(sfItem)
	wishParam  = regexp.MustCompile(sfParam)
)

// parseWish returns the first wish in a field of Accept-Signature that a Web Bot Auth signature with
// Ed25519 can grant (RFC 9421, 5.1). It takes time linear in the length of the field.
func parseWish(field string) (w wish, ok bool) {
	for len(field) <= maxWish {
		member := wishMember.FindStringSubmatch(field)
		if member == nil {
			break
		}
		field = field[len(member[0]):]
		w = wish{label: member[1], components: wishItem.FindAllString(member[2], -1)}
		if w.complete(wishParam.FindAllString(member[3], -1)) {
			return w, true
		}
	}
	return wish{}, false
}

// complete adds the parameters and what every signature covers, and reports whether the wish can be
// granted: it is not for another kind of signature, and has no parameters that are not known.
func (w *wish) complete(params []string) bool {
	for _, param := range params {
		name, value, _ := strings.Cut(param[1:], "=")
		text, isString := strings.CutPrefix(strings.TrimSuffix(value, `"`), `"`)
		switch {
		case name == "created", name == "expires": // always there
		case value == `"web-bot-auth"` && name == "tag", value == `"ed25519"` && name == "alg":
		case name == "keyid" && isString:
			w.keyID = text
		case name == "nonce" && isString:
			w.nonce = text
		default:
			return false
		}
	}
	if !slices.Contains(w.components, `"@authority"`) && !slices.Contains(w.components, `"@target-uri"`) {
		w.components = append(w.components, `"@authority"`)
	}
	sorted := slices.Sorted(slices.Values(w.components))
	return len(slices.Compact(sorted)) == len(w.components) // each is covered once
}
