package cookies

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Load adds the cookies of a file in Netscape's format, as curl, wget and browser extensions write
// it. Each is sent only where the file says. An error names the line that is at fault; the cookies
// before it have been added.
func (j *Jar) Load(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line, httpOnly := strings.CutPrefix(strings.TrimRight(lines.Text(), "\r"), "#HttpOnly_")
		if line == "" || line[0] == '#' && !httpOnly {
			continue
		}
		if err := j.loadLine(line, time.Now()); err != nil {
			return fmt.Errorf("cookies: line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("cookies: %w", err)
	}
	return nil
}

// loadLine adds the cookie of a line: domain, whether it includes subdomains, path, whether it is
// for https only, expiry (0: with the session), name and value.
func (j *Jar) loadLine(line string, now time.Time) error {
	f := strings.Split(line, "\t")
	if len(f) == 6 {
		f = append(f, "") // an empty value, whose tab an editor has removed
	}
	if len(f) != 7 {
		return fmt.Errorf("%d fields, want 7 with tabs between them", len(f))
	}
	expires, err := strconv.ParseInt(f[4], 10, 64)
	if err != nil {
		return fmt.Errorf("expiry %q is not a number of seconds", f[4])
	}
	at, ok := newPlace("https", strings.TrimPrefix(f[0], "."), "/")
	if !ok || f[5] == "" {
		return errors.New("no domain or no name")
	}
	set := &http.Cookie{Name: f[5], Value: f[6], Path: f[2], Secure: strings.EqualFold(f[3], "TRUE")}
	if strings.EqualFold(f[1], "TRUE") {
		set.Domain = at.host
	}
	if expires != 0 {
		set.Expires = time.Unix(expires, 0)
	}
	c, err := newCookie(at, set, now)
	if err != nil {
		return err
	}
	c.loaded, c.expires = true, set.Expires // however late that is
	j.mu.Lock()
	defer j.mu.Unlock()
	j.put(at.site, c, now)
	return nil
}
