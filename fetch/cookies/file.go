package cookies

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Load adds the cookies of a file in Netscape's format, as curl, wget and browser extensions write
// it. Each is sent only where the file says. An error names the line that is at fault; the cookies
// before it have been added.
func (j *Jar) Load(r io.Reader) error {
	now := time.Now()
	bySite := make(map[string][]*cookie)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n, err := 1, error(nil)
	for ; lines.Scan(); n++ {
		line, httpOnly := strings.CutPrefix(strings.TrimRight(lines.Text(), "\r"), "#HttpOnly_")
		if line == "" || line[0] == '#' && !httpOnly {
			continue
		}
		var site string
		var c *cookie
		if site, c, err = parseLine(line, now); err != nil {
			break
		}
		bySite[site] = append(bySite[site], c)
	}
	if err = cmp.Or(err, lines.Err()); err != nil {
		err = fmt.Errorf("cookies: line %d: %w", n, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for site, of := range bySite {
		j.put(site, of, now)
	}
	return err
}

// maxLine is the maximum length of a line, which browsers' cookies are far below.
const maxLine = 1 << 20

// maxExpiry bounds an expiry: with the seconds from the year 1 to 1970, more would overflow, as the largest
// number does that programs write for "never".
const maxExpiry = math.MaxInt64 >> 1

// parseLine returns the cookie of a line: domain, whether it includes subdomains, path, whether it
// is for https only, expiry (0: with the session), name and value.
func parseLine(line string, now time.Time) (site string, c *cookie, err error) {
	f := strings.Split(line, "\t")
	if len(f) == 6 {
		f = append(f, "") // an empty value, whose tab an editor has removed
	}
	if len(f) != 7 {
		return "", nil, fmt.Errorf("%d fields, want 7 with tabs between them", len(f))
	}
	expires, err := strconv.ParseInt(f[4], 10, 64)
	if err != nil {
		return "", nil, fmt.Errorf("expiry %q is not a number of seconds", f[4])
	}
	at, ok := newPlace("https", strings.TrimPrefix(f[0], "."), "/")
	if !ok || f[5] == "" {
		return "", nil, errors.New("no domain or no name")
	}
	if !strings.HasPrefix(f[2], "/") || len(f[2]) > maxAttribute { // a server's would be for the whole host
		return "", nil, errors.New("the path has no / in front, or more than 1,024 bytes")
	}
	set := &http.Cookie{Name: f[5], Value: f[6], Path: f[2], Secure: strings.EqualFold(f[3], "TRUE")}
	if n := len(set.Value); n > 1 && set.Value[0] == '"' && set.Value[n-1] == '"' {
		set.Value, set.Quoted = set.Value[1:n-1], true
	}
	if (&http.Cookie{Name: "any", Value: set.Value}).Valid() != nil { // it would be sent without some bytes
		return "", nil, errors.New("net/http does not send such a value as it is")
	}
	if strings.EqualFold(f[1], "TRUE") {
		set.Domain = at.host
	}
	if expires != 0 {
		set.Expires = time.Unix(min(expires, maxExpiry), 0)
	}
	if c, err = newCookie(at, set, now); err != nil {
		return "", nil, err
	}
	c.loaded, c.expires = true, set.Expires // however late that is
	return at.site, c, nil
}
