package hostcache

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	"github.com/spinneret-go/spinneret/internal/durable"
)

// errNoCodec says what a value type lacks.
var errNoCodec = errors.New("cannot be saved: " +
	"it needs methods AppendBinary and UnmarshalBinary, or a fixed size and no unexported fields")

// A codec converts values to bytes and back, by the means of their type.
type codec[V any] struct {
	layout string // must match that of a file
	append func(b []byte, v V) ([]byte, error)
	decode func(b []byte, v *V) error
}

// newCodec returns the codec for a type: its own methods or those of a pointer to it, or the bytes
// themselves for a string or a type of fixed size.
func newCodec[V any]() (c codec[V], err error) {
	t := reflect.TypeFor[V]()
	c.layout = t.String()
	var zero V
	switch {
	case isBinary(any(&zero)):
		c.append = func(b []byte, v V) ([]byte, error) { return appendBinary(b, &v) }
		c.decode = func(b []byte, v *V) error {
			return any(v).(encoding.BinaryUnmarshaler).UnmarshalBinary(b)
		}
	case t.Kind() == reflect.String:
		c.append = func(b []byte, v V) ([]byte, error) {
			return append(b, reflect.ValueOf(v).String()...), nil
		}
		c.decode = func(b []byte, v *V) error {
			reflect.ValueOf(v).Elem().SetString(string(b))
			return nil
		}
	case t.Kind() != reflect.Slice && hasFixedSize(&zero):
		c.layout = fmt.Sprintf("%v of %d bytes, shape %08x", t, binary.Size(&zero), durable.Sum([]byte(shape(t))))
		c.append = func(b []byte, v V) ([]byte, error) {
			return binary.Append(b, binary.LittleEndian, &v)
		}
		c.decode = func(b []byte, v *V) error {
			if n, err := binary.Decode(b, binary.LittleEndian, v); err != nil || n != len(b) {
				return fmt.Errorf("value of %d bytes", len(b))
			}
			return nil
		}
	default:
		return c, fmt.Errorf("hostcache: %v %w", t, errNoCodec)
	}
	if len(c.layout) > maxLayout {
		return c, fmt.Errorf("hostcache: %.100s… cannot be saved: the type's name has %d bytes of %d: "+
			"give it a shorter one", c.layout, len(c.layout), maxLayout)
	}
	return c, nil
}

// shape describes a type of fixed size by what its bytes mean: two types of one name, or a type before
// and after a change of its fields, may have the same size.
func shape(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), shape(t.Elem()))
	case reflect.Struct:
		text := "{"
		for i := range t.NumField() {
			field := t.Field(i)
			text += field.Name + " " + shape(field.Type) + ";"
		}
		return text + "}"
	}
	return t.Kind().String()
}

func isBinary(v any) bool {
	_, appends := v.(encoding.BinaryAppender)
	_, marshals := v.(encoding.BinaryMarshaler)
	_, reads := v.(encoding.BinaryUnmarshaler)
	return (appends || marshals) && reads
}

func appendBinary(b []byte, v any) ([]byte, error) {
	if a, ok := v.(encoding.BinaryAppender); ok {
		return a.AppendBinary(b)
	}
	text, err := v.(encoding.BinaryMarshaler).MarshalBinary()
	return append(b, text...), err
}

// hasFixedSize reports whether v points to a value that encoding/binary writes and reads.
func hasFixedSize(v any) (ok bool) {
	defer func() {
		if recover() != nil { // it can write unexported fields, but not read them
			ok = false
		}
	}()
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		return false
	}
	_, err = binary.Decode(b, binary.LittleEndian, v)
	return err == nil
}
