package resolve

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// udpSize is the size of UDP answers that we announce: they pass everywhere in one piece.
const udpSize = 1232

// A question is what was asked, to be recognized in the answer.
type question struct {
	id   uint16
	name dnsmessage.Name // in random upper and lower case
	kind dnsmessage.Type
}

// newQuestion chooses an id, and the case of each letter of a name. A forged answer would have to
// match both (draft-vixie-dnsext-dns0x20).
func newQuestion(fqdn string, kind dnsmessage.Type) (*question, error) {
	var random [2 + 32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	spelled := []byte(fqdn)
	for i, c := range spelled {
		if 'a' <= c && c <= 'z' && random[2+i/8%32]>>(i%8)&1 == 1 {
			spelled[i] = c - 'a' + 'A'
		}
	}
	name, err := dnsmessage.NewName(string(spelled))
	return &question{binary.BigEndian.Uint16(random[:]), name, kind}, err
}

// pack returns the message that asks the question, behind two bytes of its length.
func (q *question) pack(edns bool) ([]byte, error) {
	b := dnsmessage.NewBuilder(make([]byte, 2, 2+512),
		dnsmessage.Header{ID: q.id, RecursionDesired: true})
	b.EnableCompression()
	err := errors.Join(b.StartQuestions(),
		b.Question(dnsmessage.Question{Name: q.name, Type: q.kind, Class: dnsmessage.ClassINET}))
	if edns {
		var h dnsmessage.ResourceHeader
		err = errors.Join(err, h.SetEDNS0(udpSize, dnsmessage.RCodeSuccess, false),
			b.StartAdditionals(), b.OPTResource(h, dnsmessage.OPTResource{}))
	}
	packed, err2 := b.Finish()
	if err = errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("pack the question: %w", err)
	}
	binary.BigEndian.PutUint16(packed, uint16(len(packed)-2))
	return packed, nil
}

// A message is the relevant part of an answer. Names are in lower case.
type message struct {
	rcode     dnsmessage.RCode
	truncated bool
	lame      bool // it only says that other servers may know
	noName    bool

	addrs    map[string][]netip.Addr
	aliases  map[string]string
	ttls     map[string]time.Duration // of the records of each name
	zone     string                   // of the SOA record, "" if there is none
	negative time.Duration            // what that says
}

// errStray means that a message is not the answer to a question.
var errStray = errors.New("the message does not answer the question")

// errSpelling means that it is, but with another spelling of the name.
var errSpelling = errors.New("the answer spells the name in another way")

// parse reads the answer to a question. It returns errStray if the message is another one,
// errSpelling if the spelling must match and does not, and an error that wraps ErrServerFailure if
// it is malformed.
func (q *question) parse(b []byte, exact bool) (*message, error) {
	var p dnsmessage.Parser
	h, err := p.Start(b)
	if err != nil || h.ID != q.id || !h.Response || h.OpCode != 0 {
		return nil, errStray
	}
	m := &message{
		rcode: h.RCode, truncated: h.Truncated, noName: h.RCode == dnsmessage.RCodeNameError,
		addrs:   map[string][]netip.Addr{},
		aliases: map[string]string{}, ttls: map[string]time.Duration{},
	}
	asked, err := p.AllQuestions()
	isError := h.RCode != dnsmessage.RCodeSuccess && !m.noName
	switch {
	case isError && len(asked) == 0:
		return m, nil // a server that did not understand the question, and may have sent half of it
	case err != nil || len(asked) != 1 || !q.matches(asked[0]):
		return nil, errStray
	case exact && asked[0].Name != q.name:
		return nil, errSpelling
	case isError || h.Truncated:
		return m, nil
	}
	records, err := m.answers(&p, q.kind)
	if err == nil {
		err = m.authorities(&p)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: malformed answer: %w", ErrServerFailure, err)
	}
	m.lame = h.RCode == dnsmessage.RCodeSuccess && records == 0 && !m.isAbove(lower(q.name)) &&
		!h.Authoritative && !h.RecursionAvailable
	return m, nil
}

// matches compares all but the spelling.
func (q *question) matches(other dnsmessage.Question) bool {
	return other.Type == q.kind && other.Class == dnsmessage.ClassINET &&
		lower(other.Name) == lower(q.name)
}

// lower returns a name in lower case. Only the letters of ASCII have one, and a name may have any bytes.
func lower(name dnsmessage.Name) string {
	for i, c := range name.Data[:name.Length] {
		if 'A' <= c && c <= 'Z' {
			name.Data[i] = c + 'a' - 'A'
		}
	}
	return name.String()
}

// answers reads the answer section.
func (m *message) answers(p *dnsmessage.Parser, kind dnsmessage.Type) (records int, err error) {
	for ; ; records++ {
		h, err := p.AnswerHeader()
		if err == dnsmessage.ErrSectionDone {
			return records, nil
		}
		if err != nil {
			return 0, err
		}
		name := lower(h.Name)
		switch {
		case h.Class != dnsmessage.ClassINET || h.Type != kind && h.Type != dnsmessage.TypeCNAME:
			err = p.SkipAnswer()
		case h.Type == dnsmessage.TypeA:
			var body dnsmessage.AResource
			body, err = p.AResource()
			m.add(name, netip.AddrFrom4(body.A), h.TTL)
		case h.Type == dnsmessage.TypeAAAA:
			var body dnsmessage.AAAAResource
			body, err = p.AAAAResource()
			m.add(name, netip.AddrFrom16(body.AAAA).Unmap(), h.TTL)
		default:
			var body dnsmessage.CNAMEResource
			body, err = p.CNAMEResource()
			m.aliases[name] = lower(body.CNAME)
			m.keep(name, h.TTL)
		}
		if err != nil {
			return 0, err
		}
	}
}

func (m *message) add(name string, addr netip.Addr, ttl uint32) {
	if len(m.addrs[name]) < maxV4+maxV6 {
		m.addrs[name] = append(m.addrs[name], addr)
	}
	m.keep(name, ttl)
}

// keep notes the ttl of a record: that of a name is the shortest one.
func (m *message) keep(name string, seconds uint32) {
	ttl := duration(seconds)
	if old, known := m.ttls[name]; !known || ttl < old {
		m.ttls[name] = ttl
	}
}

const maxDuration = time.Duration(1<<31) * time.Second

// duration returns a ttl. One with the highest bit set means zero (RFC 2181 §8).
func duration(seconds uint32) time.Duration {
	if seconds > 1<<31-1 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// authorities looks for an SOA record.
func (m *message) authorities(p *dnsmessage.Parser) error {
	for {
		h, err := p.AuthorityHeader()
		if err == dnsmessage.ErrSectionDone {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Class != dnsmessage.ClassINET || h.Type != dnsmessage.TypeSOA {
			if err := p.SkipAuthority(); err != nil {
				return err
			}
			continue
		}
		soa, err := p.SOAResource()
		if err != nil {
			return err
		}
		m.zone = lower(h.Name)
		m.negative = min(duration(h.TTL), duration(soa.MinTTL))
	}
}

// resolve follows aliases from a name to the last one in the message. It returns how many it
// passed, at most limit, and the shortest of their ttls.
func (m *message) resolve(name string, limit int) (end string, passed int, ttl time.Duration) {
	end, ttl = name, maxDuration
	for passed < limit && len(m.addrs[end]) == 0 {
		target, ok := m.aliases[end]
		if !ok {
			break
		}
		ttl = min(ttl, m.ttls[end])
		end = target
		passed++
	}
	return end, passed, ttl
}

// negativeTTL returns how long a name stays without an address: 0 if no zone above it says so.
func (m *message) negativeTTL(name string) time.Duration {
	if !m.isAbove(name) {
		return 0
	}
	return m.negative
}

// isAbove reports whether the message has an SOA record of a zone that a name is in.
func (m *message) isAbove(name string) bool {
	return m.zone == "." || m.zone != "" && (name == m.zone || strings.HasSuffix(name, "."+m.zone))
}
