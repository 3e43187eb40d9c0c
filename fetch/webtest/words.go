package webtest

// The vocabulary is the same in every web; the seed determines the order of the words.
const (
	wordCount     = 1024
	sentenceCount = 1024
)

// prose holds ready-made sentences. Copying a sentence is ten times as fast as spelling its
// words, and text is most of a page.
type prose struct {
	words []string
	text  []byte   // all sentences, one after the other
	start []uint32 // of each sentence in text, and the end of the last
}

// newProse has the same words for each seed; only their order depends on the web.
func newProse(seed uint64) *prose {
	p := &prose{words: make([]string, wordCount), start: make([]uint32, 0, sentenceCount+1)}
	spell := rng(0)
	for i := range p.words {
		p.words[i] = newWord(&spell)
	}
	r := rng(mix(seed))
	for range sentenceCount {
		p.start = append(p.start, uint32(len(p.text)))
		p.appendSentence(&r)
	}
	p.start = append(p.start, uint32(len(p.text)))
	return p
}

// newWord makes two to nine letters that can be pronounced, which helps when reading a log.
func newWord(r *rng) string {
	const consonants, vowels = "bcdfghjklmnprstvwz", "aeiou"
	var b []byte
	for range 1 + r.below(2) + r.below(3) {
		b = append(b, consonants[r.below(len(consonants))], vowels[r.below(len(vowels))])
	}
	if r.below(2) == 0 {
		b = append(b, consonants[r.below(len(consonants))])
	}
	return string(b)
}

// oddWords need a parser that supports entities and UTF-8, as real text does.
var oddWords = []string{
	"caf\u00e9", "\u6771\u4eac", "R&amp;D", "&eacute;t&eacute;", "&#8212;", "1&nbsp;000",
}

// appendSentence adds one sentence. Its first word is never an odd one: it gets a capital.
func (p *prose) appendSentence(r *rng) {
	from := len(p.text)
	for i := range 6 + r.below(12) {
		if i > 0 {
			p.text = append(p.text, ' ')
		}
		if i > 0 && r.below(24) == 0 {
			p.text = append(p.text, oddWords[r.below(len(oddWords))]...)
			continue
		}
		p.text = append(p.text, p.word(r)...)
	}
	p.text[from] -= 'a' - 'A'
	p.text = append(p.text, ". "...)
}

func (p *prose) word(r *rng) string { return p.words[r.below(wordCount)] }

// sentence returns a slice of the shared text: to be copied, not changed.
func (p *prose) sentence(r *rng) []byte {
	i := r.below(sentenceCount)
	return p.text[p.start[i]:p.start[i+1]]
}
