package cockpit

import (
	"encoding/json"
	"time"
)

// appendJSON appends exactly what [json.Marshal] returns for the line. An ordinary line costs no
// allocation of its own. Years have four digits, and zones whole minutes.
func (l Line) appendJSON(b []byte) []byte {
	b = appendTime(append(b, `{"time":`...), l.Time)
	b = appendString(append(b, `,"url":`...), l.URL)
	b = appendString(append(b, `,"fate":`...), string(l.Fate))
	b = appendString(append(b, `,"says":`...), l.Says)
	if l.Signals != "" {
		b = appendString(append(b, `,"signals":`...), l.Signals)
	}
	if l.Why != "" {
		b = appendString(append(b, `,"why":`...), l.Why)
	}
	if !l.Next.IsZero() {
		b = appendTime(append(b, `,"next":`...), l.Next)
	}
	return append(b, '}')
}

func appendTime(b []byte, t time.Time) []byte {
	return append(t.AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}

// appendString copies a string that encoding/json would not escape, which URLs rarely need except
// for their ampersands.
func appendString(b []byte, s string) []byte {
	start := len(b)
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '&':
			b = append(b, `\u0026`...)
		case c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>':
			text, _ := json.Marshal(s) // which never fails for a string
			return append(b[:start], text...)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
