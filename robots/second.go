package robots

import (
	"strings"

	"github.com/temoto/robotstxt"
)

// maxSecond is the most patterns that temoto decides on. It compares a path with each of them:
// at this size a check takes two to three times as long as by our search, and the gap grows
// with the size. Most real groups without wildcards are smaller.
const maxSecond = 64

// secondEngine compiles literal patterns with temoto/robotstxt. No wildcard may reach it: it
// would rank them wrongly and cost a regular expression each.
//
// The text is written so that nothing is left to temoto's reading of files, which rejects a
// whole file for one bad line: a single group for *, canonical patterns without blanks or
// comments, no two alike, because of equals temoto takes the first and not the Allow.
//
// It returns nil, and leaves the group to us, if temoto refuses the text all the same.
func secondEngine(list []rule, source string) *robotstxt.Group {
	var text strings.Builder
	text.WriteString("User-agent: *\n")
	for i := range list {
		if list[i].allow() {
			text.WriteString("Allow: ")
		} else {
			text.WriteString("Disallow: ")
		}
		text.WriteString(list[i].pattern(source))
		text.WriteByte('\n')
	}
	data, err := robotstxt.FromString(text.String())
	if err != nil {
		return nil
	}
	return data.FindGroup(anyAgent)
}
