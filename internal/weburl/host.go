package weburl

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// The names that are passed to idna have at most maxName characters, and each label at most maxForeign
// different ones that are not ASCII: punycode takes time proportional to the product. No resolvable
// name has more, since each character takes at least one byte of its punycode.
const (
	maxName    = 255
	maxForeign = 63
)

// toASCII maps names by the standard: non-transitional processing, with the checks that browsers
// make.
var toASCII = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
	idna.CheckJoiners(true),
	idna.BidiRule(),
	idna.VerifyDNSLength(false),
).ToASCII

// HostName returns the one form of a host's name, for keys and comparisons: ASCII, in lower case
// and without a dot at the end. name is a host as [net/url.URL.Hostname] returns it, without port
// and brackets. International names become punycode. IPv4 addresses in any notation become dotted
// decimals, and IPv6 addresses are written in their shortest form, also without brackets.
//
// All errors are of type [ParseError] with the kind ErrHost: nothing, a character that no host may
// have, a name that ends in a number without being an address, an IPv6 address with a zone. The
// result of HostName is a fixed point of it. A name that is in this form already is returned
// without an allocation. The time is linear in its length.
func HostName(name string) (string, error) {
	if strings.Contains(name, ":") {
		var buf [maxIPv6]byte
		text, err := appendIPv6(buf[:0], name)
		return reuse(name, text), err
	}
	host, err := parseHost(strings.TrimRight(name, "."), true)
	// Mapping may have added dots: U+3002 becomes one.
	bare := strings.TrimRight(host, ".")
	switch {
	case err != nil:
		return "", err
	case bare == "":
		return "", ParseError{ErrHost, "empty"}
	case bare != host && endsInNumber(bare):
		return parseIPv4(bare)
	}
	return bare, nil
}

// parseHost returns the serialized host. Only special schemes have domains and IPv4 addresses;
// hosts of other schemes are opaque and unchanged.
func parseHost(in string, special bool) (string, error) {
	switch {
	case strings.HasPrefix(in, "["):
		return parseIPv6(in)
	case !special && has(in, inOpaqueHost):
		return "", ParseError{ErrHost, "forbidden character"}
	case !special:
		return encode(in, inControl), nil
	}
	if has(in, inDomain) {
		var err error
		if in, err = mapDomain(in); err != nil {
			return "", err
		}
	}
	if endsInNumber(in) {
		return parseIPv4(in)
	}
	return in, nil
}

// A lastHost remembers what an international name became. Most links of a page lead to few hosts, and
// mapping a name takes longer than all the rest of the parser.
type lastHost struct {
	in, out string
	err     error
}

// parse is parseHost of a special scheme.
func (l *lastHost) parse(in string) (string, error) {
	if l == nil || isASCII(in) {
		return parseHost(in, true)
	}
	if l.in != in {
		out, err := parseHost(in, true)
		*l = lastHost{in, out, err}
	}
	return l.out, l.err
}

// mapDomain decodes and maps a domain that is not plain lowercase ASCII. Escapes are decoded first,
// since "%C3%BC.test" and "ü.test" are the same name.
func mapDomain(in string) (string, error) {
	name := decode(in)
	if isASCII(name) {
		// Most names are ASCII, and for them the standard requires nothing else. It does not even
		// check whether punycode in them is valid, and in some real names it is not.
		name = strings.ToLower(name)
	} else {
		if isLong(name) {
			return "", ParseError{ErrHost, "too long"}
		}
		// The tables before Go 1.27 are those of Unicode 15, which make the capital sharp s another name.
		name = strings.ReplaceAll(strings.ToValidUTF8(name, "\uFFFD"), "\u1E9E", "ß")
		var err error
		if name, err = toASCII(name); err != nil {
			return "", ParseError{ErrHost, "invalid internationalized name"}
		}
	}
	// Decoding and mapping can result in an empty name (from a soft hyphen alone), or in one with a
	// slash.
	switch {
	case name == "":
		return "", ParseError{ErrHost, "empty"}
	case has(name, inDomain):
		return "", ParseError{ErrHost, "forbidden character"}
	}
	return name, nil
}

// isLong reports whether a name has too many characters, or a label of it too many different ones.
func isLong(name string) bool {
	var foreign [maxForeign]rune
	total, n := 0, 0
	for _, c := range name {
		total++
		switch {
		case total > maxName:
			return true
		case c == '.', c == '\u3002', c == '\uFF0E', c == '\uFF61': // which all separate labels
			n = 0
		case c < utf8.RuneSelf || slices.Contains(foreign[:n], c):
		case n == maxForeign:
			return true
		default:
			foreign[n] = c
			n++
		}
	}
	return false
}

// decode undoes the percent-encoding. Unlike in net/url, an invalid escape is unchanged; its
// percent sign makes the host invalid later.
func decode(in string) string {
	if !strings.Contains(in, "%") {
		return in
	}
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); i++ {
		c := in[i]
		if c == '%' && i+2 < len(in) && isHex(in[i+1]) && isHex(in[i+2]) {
			c = unhex(in[i+1])<<4 | unhex(in[i+2])
			i += 2
		}
		out = append(out, c)
	}
	return string(out)
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// endsInNumber reports whether the last label of a domain is a number. Then it must be an IPv4
// address: no top-level domain is a number, and what some programs take for an address must not be
// a name to others.
func endsInNumber(domain string) bool {
	domain = strings.TrimSuffix(domain, ".")
	last := domain[strings.LastIndexByte(domain, '.')+1:]
	if last == "" || !isDigit(last[0]) {
		return false
	}
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	return strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == ""
}

// parseIPv4 parses the forms of BSD's inet_aton: one to four numbers, each decimal, octal or
// hexadecimal, the last of which fills the rest of the 32 bits. A crawler's guard against private
// addresses relies on 0x7f.1 being recognized here, and not by the resolver.
func parseIPv4(domain string) (string, error) {
	rest, address := strings.TrimSuffix(domain, "."), uint64(0)
	for bits, more := 32, true; more; {
		if bits == 0 {
			return "", ParseError{ErrHost, "IPv4 address with more than four parts"}
		}
		var part string
		part, rest, more = strings.Cut(rest, ".")
		width := 8
		if !more {
			width = bits
		}
		bits -= width
		number, ok := parseIPv4Number(part, width)
		if !ok {
			return "", ParseError{ErrHost, "bad number in an IPv4 address"}
		}
		address = address<<width | number
	}
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], uint32(address))
	var buf [len("255.255.255.255")]byte
	return reuse(domain, netip.AddrFrom4(ip).AppendTo(buf[:0])), nil
}

// parseIPv4Number requires a lowercase part. A number must fit into the given bits.
func parseIPv4Number(part string, bits int) (number uint64, ok bool) {
	base := 10
	switch {
	case part == "":
		return 0, false
	case strings.HasPrefix(part, "0x"):
		part, base = part[2:], 16
	case len(part) > 1 && part[0] == '0':
		part, base = part[1:], 8
	}
	if part == "" {
		return 0, true // "0x" alone is zero, as in the C library
	}
	number, err := strconv.ParseUint(part, base, bits)
	return number, err == nil
}

// parseIPv6 returns an address in brackets in its shortest form, in brackets too.
func parseIPv6(in string) (string, error) {
	if !strings.HasSuffix(in, "]") {
		return "", ParseError{ErrHost, "unclosed bracket"}
	}
	var buf [maxIPv6 + len("[]")]byte
	out, err := appendIPv6(append(buf[:0], '['), in[1:len(in)-1])
	if err != nil {
		return "", err
	}
	return reuse(in, append(out, ']')), nil
}

// maxIPv6 is the length of the longest address.
const maxIPv6 = len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")

// appendIPv6 appends an address in its shortest form. Package netip accepts the same addresses as
// the standard, and also zones, which are meaningless on other machines.
func appendIPv6(dst []byte, in string) ([]byte, error) {
	ip, err := netip.ParseAddr(in)
	if err != nil || !ip.Is6() || ip.Zone() != "" {
		return nil, ParseError{ErrHost, "bad IPv6 address"}
	}
	v4 := ip.Unmap()
	if !v4.Is4() {
		return ip.AppendTo(dst), nil
	}
	// Package netip would write the last four bytes in decimal, the standard does not.
	b := v4.As4()
	dst = append(dst, "::ffff:"...)
	dst = strconv.AppendUint(dst, uint64(b[0])<<8|uint64(b[1]), 16)
	return strconv.AppendUint(append(dst, ':'), uint64(b[2])<<8|uint64(b[3]), 16), nil
}

// reuse returns normal as a string, without an allocation if it is the input itself.
func reuse(in string, normal []byte) string {
	if string(normal) == in {
		return in
	}
	return string(normal)
}
