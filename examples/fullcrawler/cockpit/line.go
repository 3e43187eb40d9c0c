package cockpit

import (
	"encoding/json"
	"time"
)

// appendJSON appends exactly what [json.Marshal] returns for the line. An ordinary line costs no
// allocation of its own. After an error, nothing was appended.
func (l Line) appendJSON(to []byte) ([]byte, error) {
	b := append(to, `{"time":`...)
	b, err := appendTime(b, l.Time)
	for _, field := range [...]struct {
		name, value string
		optional    bool
	}{
		{`,"url":`, l.URL, false},
		{`,"fate":`, string(l.Fate), false},
		{`,"says":`, l.Says, false},
		{`,"signals":`, l.Signals, true},
		{`,"why":`, l.Why, true},
	} {
		if err == nil && (field.value != "" || !field.optional) {
			b, err = appendString(append(b, field.name...), field.value)
		}
	}
	if err == nil && !l.Next.IsZero() {
		b, err = appendTime(append(b, `,"next":`...), l.Next)
	}
	if err != nil {
		return to, err
	}
	return append(b, '}'), nil
}

// appendTime leaves years and zones that RFC 3339 cannot express to encoding/json, which returns an
// error.
func appendTime(b []byte, t time.Time) ([]byte, error) {
	if t.Location() == time.UTC && t.Year() >= 0 && t.Year() <= 9999 {
		return append(t.AppendFormat(append(b, '"'), time.RFC3339Nano), '"'), nil
	}
	return appendMarshaled(b, t)
}

// appendString copies a string that encoding/json would not escape, which URLs rarely need except
// for their ampersands.
func appendString(b []byte, s string) ([]byte, error) {
	start := len(b)
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '&':
			b = append(b, `\u0026`...)
		case c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>':
			return appendMarshaled(b[:start], s)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"'), nil
}

func appendMarshaled(b []byte, value any) ([]byte, error) {
	text, err := json.Marshal(value)
	return append(b, text...), err
}
