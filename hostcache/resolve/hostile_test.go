package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/spinneret-go/spinneret/hostcache/resolve"
)

// change returns the answer of the sample zone with a modification.
func change(f func(*message)) func(q message) []byte {
	return func(q message) []byte { return sample.answer(q, f)[0] }
}

// strays are messages that look like the answer, but do not match the question.
var strays = map[string]func(q message) []byte{
	"another id":     change(func(m *message) { m.ID ^= 1 }),
	"a question":     change(func(m *message) { m.Response = false }),
	"another opcode": change(func(m *message) { m.OpCode = 4 }),
	"another type":   change(func(m *message) { m.Questions[0].Type = dnsmessage.TypeMX }),
	"another class":  change(func(m *message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }),
	"another name": change(func(m *message) {
		m.Questions[0].Name = dnsmessage.MustNewName("other.test.")
	}),
	"no question":    change(func(m *message) { m.Questions = nil }),
	"two questions":  change(func(m *message) { m.Questions = append(m.Questions, m.Questions[0]) }),
	"nothing":        func(message) []byte { return nil },
	"half a header":  func(q message) []byte { return pack(&q)[:7] },
	"half a message": func(q message) []byte { return sample.answer(q)[0][:20] },
	"zeros":          func(message) []byte { return make([]byte, 100) },
}

// TestStraysAreNotBelieved sends some of them before the answer.
func TestStraysAreNotBelieved(t *testing.T) {
	for name, stray := range strays {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t, func(q message) (all [][]byte) {
					forged := q
					forged.Header.ID = q.ID
					for range 20 {
						all = append(all, stray(clone(q)))
					}
					return append(all, sample.answer(q)...)
				})
				got, err := n.resolver(resolve.Options{}).LookupNetIP(t.Context(), "ip4", "plain.test")
				require.NoError(t, err)
				require.Equal(t, addrs("192.0.2.10", "192.0.2.11"), got)
				for _, asked := range n.questions() {
					require.Contains(t, asked, "udp ", "the answer came in the end")
				}
			})
		})
	}
}

// clone copies a question, so that changes of its answer do not affect it.
func clone(q message) message {
	q.Questions = append([]dnsmessage.Question(nil), q.Questions...)
	return q
}

// TestFloodsEndInTCP sends strays forever, as an attacker would to guess the id.
func TestFloodsEndInTCP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, sample.handler())
		var sent atomic.Int32
		n.servers["udp "+one] = func(q message) (all [][]byte) {
			for range 10_000 {
				all = append(all, sample.answer(clone(q), func(m *message) {
					m.ID ^= 1
					m.Answers = nil
				})...)
			}
			sent.Add(1)
			return all
		}
		begun := time.Now()
		got, err := n.resolver(resolve.Options{}).LookupNetIP(t.Context(), "ip4", "plain.test")
		require.NoError(t, err)
		require.Equal(t, addrs("192.0.2.10", "192.0.2.11"), got)
		require.Zero(t, time.Since(begun))
		require.EqualValues(t, 2, sent.Load(), "one for each kind of address")
	})
}

// TestOtherSpellingsEndInTCP has a forger that guessed everything but the case of the letters, or a
// server that does not preserve it.
func TestOtherSpellingsEndInTCP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forged := zone{"a-long-name-of-many-letters.test.": {
			a("a-long-name-of-many-letters.test.", "192.0.2.66", 300),
		}}
		truth := zone{"a-long-name-of-many-letters.test.": {
			a("a-long-name-of-many-letters.test.", "192.0.2.10", 300),
		}}
		lower := func(m *message) {
			name := strings.ToLower(m.Questions[0].Name.String())
			m.Questions = []dnsmessage.Question{m.Questions[0]}
			m.Questions[0].Name = dnsmessage.MustNewName(name)
		}
		n := newNetwork(t, truth.handler(lower)) // over TCP it does no harm
		n.servers["udp "+one] = forged.handler(lower)
		addr, err := n.resolver(resolve.Options{}).Addr(t.Context(), "a-long-name-of-many-letters.test")
		require.NoError(t, err)
		require.Equal(t, "192.0.2.10", addr.String())
	})
}

// TestTruncatedAnswersAreAskedForOverTCP has a truncated answer with a part of the records.
func TestTruncatedAnswersAreAskedForOverTCP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, sample.handler())
		n.servers["udp "+one] = sample.handler(func(m *message) {
			m.Truncated = true
			m.Answers = m.Answers[:min(1, len(m.Answers))]
		})
		got, err := n.resolver(resolve.Options{}).LookupNetIP(t.Context(), "ip4", "plain.test")
		require.NoError(t, err)
		require.Equal(t, addrs("192.0.2.10", "192.0.2.11"), got)
		require.Len(t, n.questions(), 4)

		n.servers["tcp "+one] = n.servers["udp "+one]
		_, err = n.resolver(resolve.Options{}).Addr(t.Context(), "plain.test")
		require.ErrorIs(t, err, resolve.ErrServerFailure, "truncated over TCP as well")
		delete(n.servers, "tcp "+one)
		_, err = n.resolver(resolve.Options{}).Addr(t.Context(), "plain.test")
		require.ErrorIs(t, err, resolve.ErrServerFailure, "no TCP")
	})
}

// TestOnlyRecordsOfTheNameCount has answers with more records than were requested.
func TestOnlyRecordsOfTheNameCount(t *testing.T) {
	for _, tt := range []struct {
		name    string
		records []dnsmessage.Resource
		want    string // "" if there is no address
	}{
		{"another name's address", []dnsmessage.Resource{a("bank.test.", "192.0.2.66", 300)}, ""},
		{"beside the right one", []dnsmessage.Resource{
			a("bank.test.", "192.0.2.66", 300), a("a.test.", "192.0.2.1", 300)}, "192.0.2.1"},
		{"a name that ends in it", []dnsmessage.Resource{a("x.a.test.", "192.0.2.66", 300)}, ""},
		{"in other letters", []dnsmessage.Resource{a("A.TEST.", "192.0.2.1", 300)}, "192.0.2.1"},
		{"an alias of another name", []dnsmessage.Resource{
			cname("b.test.", "c.test.", 300), a("c.test.", "192.0.2.66", 300)}, ""},
		{"aliases in any order", []dnsmessage.Resource{
			a("c.test.", "192.0.2.1", 300), cname("b.test.", "c.test.", 300),
			cname("a.test.", "b.test.", 300)}, "192.0.2.1"},
		{"a letter that is one of ours in lower case", []dnsmessage.Resource{
			cname("a.test.", "bank.test.", 300), a("ban\u212a.test.", "192.0.2.66", 300)}, ""},
		{"other bytes", []dnsmessage.Resource{
			cname("a.test.", "\xfe.test.", 300), a("\xff.test.", "192.0.2.66", 300)}, ""},
		{"an alias of any bytes", []dnsmessage.Resource{
			cname("a.test.", "\xfe.test.", 300), a("\xfe.test.", "192.0.2.1", 300)}, "192.0.2.1"},
		{"another class", []dnsmessage.Resource{chaos(a("a.test.", "192.0.2.66", 300))}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t, zone{"a.test.": tt.records}.handler())
				r := n.resolver(resolve.Options{})
				got, err := r.LookupNetIP(t.Context(), "ip4", "a.test")
				if tt.want == "" {
					require.ErrorContains(t, err, "no such host")
				} else {
					require.NoError(t, err)
					require.Equal(t, addrs(tt.want), got)
				}
				_, known := r.Cached("bank.test")
				require.False(t, known)
			})
		})
	}
}

func chaos(r dnsmessage.Resource) dnsmessage.Resource {
	r.Header.Class = dnsmessage.ClassCHAOS
	return r
}

// TestAliasBesideAnSOAOfAnotherZone has a server that answers with the alias and the SOA record of the alias's
// own zone, which says nothing about the target.
func TestAliasBesideAnSOAOfAnotherZone(t *testing.T) {
	z := zone{
		"www.example.com.": {cname("www.example.com.", "www.cdn.test.", 300)},
		"www.cdn.test.":    {a("www.cdn.test.", "192.0.2.80", 300), a("www.cdn.test.", "2001:db8::80", 300)},
	}
	n := newNetwork(t, z.handler(func(m *message) {
		m.Authorities = []dnsmessage.Resource{soa("example.com.", 300, 300)}
	}))
	got, err := n.resolver(resolve.Options{}).LookupNetIP(t.Context(), "ip", "www.example.com")
	require.NoError(t, err)
	require.Equal(t, addrs("192.0.2.80", "2001:db8::80"), got)
}

// TestAnAliasOfAnyBytes is looked up as it is.
func TestAnAliasOfAnyBytes(t *testing.T) {
	n := newNetwork(t, func(q message) [][]byte {
		if q.Questions[0].Name.String() == "\xe9." {
			return zone{"\xe9.": {a("\xe9.", "192.0.2.1", 300)}}.answerAs(q)
		}
		return zone{"a.test.": {cname("a.test.", "\xe9.", 300)}}.answer(q)
	})
	got, err := n.resolver(resolve.Options{}).LookupNetIP(t.Context(), "ip4", "a.test")
	require.NoError(t, err)
	require.Equal(t, addrs("192.0.2.1"), got)
}

// TestTheLongestNameIsKept, however it is written.
func TestTheLongestNameIsKept(t *testing.T) {
	name := strings.Repeat("abcd.", 50) + "tes"
	n := newNetwork(t, zone{name + ".": {a(name+".", "192.0.2.1", 300)}}.handler())
	r := n.resolver(resolve.Options{})
	for range 2 {
		for _, host := range []string{name + ".", name} {
			_, err := r.Addr(t.Context(), host)
			require.NoError(t, err)
		}
	}
	require.Len(t, n.questions(), 2, "one for each kind of address")
}

// TestAliasesAreBounded has loops and long chains, in one message and in many.
func TestAliasesAreBounded(t *testing.T) {
	chain := func(n int) (records []dnsmessage.Resource) {
		for i := range n {
			records = append(records, cname(fmt.Sprintf("%d.test.", i), fmt.Sprintf("%d.test.", i+1), 300))
		}
		return append(records, a(fmt.Sprintf("%d.test.", n), "192.0.2.1", 300))
	}
	split := func(n int) zone {
		z := zone{}
		for i, r := range chain(n) {
			z[fmt.Sprintf("%d.test.", i)] = []dnsmessage.Resource{r}
		}
		return z
	}
	for _, tt := range []struct {
		name string
		zone zone
		ok   bool
	}{
		{"to itself", zone{"0.test.": {cname("0.test.", "0.test.", 300)}}, false},
		{"to each other", zone{"0.test.": {cname("0.test.", "1.test.", 300), cname("1.test.", "0.test.", 300)}}, false},
		{"to each other, one by one", zone{
			"0.test.": {cname("0.test.", "1.test.", 300)}, "1.test.": {cname("1.test.", "0.test.", 300)}}, false},
		{"ten", zone{"0.test.": chain(10)}, true},
		{"ten, one by one", split(10), true},
		{"a hundred", zone{"0.test.": chain(100)}, false},
		{"a hundred, one by one", split(100), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t, tt.zone.handler())
				_, err := n.resolver(resolve.Options{}).Addr(t.Context(), "0.test")
				require.LessOrEqual(t, len(n.questions()), 2*17)
				if tt.ok {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, resolve.ErrServerFailure)
				require.ErrorContains(t, err, "too many aliases")
			})
		})
	}
}

// TestServersThatAnswerNonsense: a nonsensical answer is a failure of the server, and the next one
// is queried.
func TestServersThatAnswerNonsense(t *testing.T) {
	for name, h := range map[string]handler{
		"a record that is cut off": func(q message) [][]byte {
			b := sample.answer(q)[0]
			return [][]byte{b[:len(b)-3]}
		},
		"more records announced": func(q message) [][]byte {
			b := sample.answer(q)[0]
			b[7] = 200
			return [][]byte{b}
		},
		"a name that points to itself": func(q message) [][]byte {
			b := sample.answer(q, func(m *message) { m.Answers = nil; m.Authorities = nil })[0]
			b[7] = 1
			return [][]byte{append(b, 0xc0, byte(len(b)), 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 1, 2, 3, 4)}
		},
		"a referral": sample.handler(func(m *message) {
			m.Answers, m.Authorities, m.RecursionAvailable = nil, nil, false
			m.RCode = dnsmessage.RCodeSuccess
		}),
		"a referral with an SOA record of another zone": sample.handler(func(m *message) {
			m.Answers, m.RecursionAvailable = nil, false
			m.Authorities = []dnsmessage.Resource{soa("other.example.", 300, 300)}
			m.RCode = dnsmessage.RCodeSuccess
		}),
		"no such operation": sample.handler(func(m *message) { m.RCode = dnsmessage.RCodeNotImplemented }),
		"an error without a question": sample.handler(func(m *message) {
			m.RCode, m.Questions, m.Answers = dnsmessage.RCodeRefused, nil, nil
		}),
		"an error that ends before the question": func(q message) [][]byte {
			return [][]byte{sample.answer(q, func(m *message) {
				m.RCode, m.Answers = dnsmessage.RCodeServerFailure, nil
			})[0][:12]}
		},
		"an error in TCP": func(message) [][]byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t, h)
				r := n.resolver(resolve.Options{})
				_, err := r.Addr(t.Context(), "plain.test")
				require.True(t, errors.Is(err, resolve.ErrServerFailure) ||
					name == "an error in TCP" && errors.Is(err, resolve.ErrUnreachable), "%v", err)
				_, known := r.Cached("plain.test")
				require.False(t, known)

				n.serve(two, sample.handler())
				addr, err := n.resolver(resolve.Options{}, one, two).Addr(t.Context(), "plain.test")
				require.NoError(t, err)
				require.Equal(t, "192.0.2.10", addr.String())
			})
		})
	}
}

// TestOldServersAreAskedWithoutEDNS has a server that does not understand the additional record,
// and says so with or without the question.
func TestOldServersAreAskedWithoutEDNS(t *testing.T) {
	for _, withQuestion := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t, func(q message) [][]byte {
				return sample.answer(q, func(m *message) {
					if len(q.Additionals) > 0 {
						m.RCode, m.Answers = dnsmessage.RCodeFormatError, nil
						if !withQuestion {
							m.Questions = nil
						}
					}
				})
			})
			addr, err := n.resolver(resolve.Options{}).Addr(t.Context(), "plain.test")
			require.NoError(t, err)
			require.Equal(t, "192.0.2.10", addr.String())
		})
	}
}

// TestOneKindOfAddressIsEnough has a server that fails for the other one.
func TestOneKindOfAddressIsEnough(t *testing.T) {
	for _, bad := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		for name, failing := range map[string]handler{
			"fails":  sample.handler(func(m *message) { m.RCode = dnsmessage.RCodeServerFailure }),
			"silent": func(message) [][]byte { return nil },
		} {
			t.Run(fmt.Sprintf("%v/%s", bad, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork(t, func(q message) [][]byte {
						if q.Questions[0].Type == bad {
							return failing(q)
						}
						return sample.answer(q)
					})
					r := n.resolver(resolve.Options{})
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					got, err := r.LookupNetIP(ctx, "ip", "both.test")
					require.NoError(t, err, "a silent kind does not take the other's answer")
					require.Len(t, got, 1)
					_, err = r.LookupNetIP(t.Context(), "ip", "empty.test")
					require.False(t, isNotFound(err), "whether there is one of the other kind is not known")
					_, err = r.LookupNetIP(t.Context(), "ip", "none.test")
					require.True(t, isNotFound(err), "but a name that does not exist has none")
				})
			})
		}
	}
}
