//go:build unix

package spinneret_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"
)

var allInputs = flag.Bool("allinputs", false, "try all hostile inputs, not some of them")

// TestTheWorkIsLinearInTheInput holds every decoder of foreign bytes to its promise: an input of 32
// times the length takes about 32 times the work, and no byte takes thousands of times the work of
// hashing it, as it would if each tag walked a long list, however bounded. The test compares
// processor times, with room for noise: what is quadratic takes a thousand times the work. Each run
// tries some inputs, chosen at random.
func TestTheWorkIsLinearInTheInput(t *testing.T) {
	for _, d := range decoders {
		t.Run(d.name, func(t *testing.T) {
			inputs := d.inputs()
			if !*allInputs {
				rand.Shuffle(len(inputs), func(i, j int) { inputs[i], inputs[j] = inputs[j], inputs[i] })
				inputs = inputs[:min(len(inputs), 40)]
			}
			for _, in := range inputs {
				growth, cost := measured(d.run, in.of)
				if growth > maxGrowth {
					t.Errorf("%s: %d times the input takes %.0f times the work", in.name, factor, growth)
				}
				if cost > maxCost {
					t.Errorf("%s: a byte takes %.0f times the work of hashing it", in.name, cost)
				}
			}
		})
	}
}

const (
	factor    = 32
	maxGrowth = 8 * factor
	maxCost   = 4000
)

// An input is a family of texts.
type input struct {
	name string
	of   func(n int) string // of about n bytes
}

// inputs returns hostile inputs: each atom again and again, each two of them by turns, and much of
// the one before much of the other.
func (d decoder) inputs() (made []input) {
	add := func(name string, of func(n int) string) {
		made = append(made, input{name, func(n int) string { return d.head + of(n) }})
	}
	for i, a := range d.atoms {
		add(fmt.Sprintf("%q", a), func(n int) string { return repeated(a, n) })
		for _, b := range d.atoms[:i] {
			add(fmt.Sprintf("%q", a+b), func(n int) string { return repeated(a+b, n) })
			add(fmt.Sprintf("%q, then %q", a, b), func(n int) string { return repeated(a, n/2) + repeated(b, n/2) })
			add(fmt.Sprintf("%q, then %q", b, a), func(n int) string { return repeated(b, n/2) + repeated(a, n/2) })
		}
	}
	return made
}

func repeated(s string, n int) string { return strings.Repeat(s, n/len(s)+1) }

// measured returns how many times the work a longer input takes, and how many times the work of
// hashing it. What looks too much is measured again, since other programs share the caches: the
// smallest results count.
func measured(run func(string), of func(n int) string) (growth, cost float64) {
	const size = 8 << 10
	short, long := of(size), of(factor*size)
	growth, cost = math.Inf(1), math.Inf(1)
	for range 6 {
		all := work(run, long, 1)
		growth = min(growth, all/work(run, short, factor))
		cost = min(cost, all/work(hash, long, 1))
		if growth <= maxGrowth && cost <= maxCost {
			break
		}
	}
	return growth, cost
}

func hash(in string) { _, _ = fnv.New64a().Write([]byte(in)) }

// work returns the seconds of processor time that one run takes.
func work(run func(string), input string, atLeast int) float64 {
	const enough = 500 * time.Microsecond
	begin := processorTime()
	for n := 1; ; n++ {
		run(input)
		if took := processorTime() - begin; n >= atLeast && took >= enough {
			return took.Seconds() / float64(n)
		}
	}
}

// processorTime returns the processor time used by this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
