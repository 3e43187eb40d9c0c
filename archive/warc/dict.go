package warc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/spinneret-go/spinneret/archive/internal/zdict"
)

// maxDict bounds the dictionary of a file. Usual sizes are tens to hundreds of kilobytes.
const maxDict = 16 << 20

// isSkippable reports whether a frame without content begins: magic numbers 0x184d2a50 to 5f.
func isSkippable(magic []byte) bool {
	return len(magic) >= 4 && magic[0]&0xf0 == 0x50 && string(magic[1:4]) == zdict.Magic[1:]
}

// skippable reads such a frame, and returns the dictionary in it if that is wanted.
func (s *source) skippable(wanted bool) (dict []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(s, head[:]); err != nil {
		return nil, err
	}
	size := int64(binary.LittleEndian.Uint32(head[4:]))
	if !wanted {
		_, err := io.CopyN(io.Discard, s, size)
		return nil, err
	}
	if size > maxDict {
		return nil, errors.New("the dictionary is too large")
	}
	dict = make([]byte, size)
	_, err = io.ReadFull(s, dict)
	return dict, err
}

// skip reads a skippable frame, and uses the dictionary in it if it is the first of the file. Even a broken
// one is the only one: each costs up to 16 MiB, and a new decoder with a window of up to 32 MiB.
func (r *Reader) skip() error {
	magic, _ := r.src.Peek(len(zdict.Magic))
	wanted := string(magic) == zdict.Magic && r.dict == nil && !r.found
	r.found = r.found || wanted
	dict, err := r.src.skippable(wanted)
	if err != nil || len(dict) == 0 {
		return err
	}
	r.Close() // the decoder must be created again, with the dictionary
	if dict, err = unpackDict(dict); err == nil {
		r.dict = dict // a part of one would make all frames unreadable
	}
	return err
}

// unpackDict decompresses a dictionary, which may itself be compressed.
func unpackDict(dict []byte) ([]byte, error) {
	if !bytes.HasPrefix(dict, magics[1]) {
		return dict, nil
	}
	zs, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxDict))
	if err != nil {
		return nil, err
	}
	defer zs.Close()
	return zs.DecodeAll(dict, nil)
}

// ReadDict returns the dictionary that a file begins with, or nil if there is none, for readers that
// start elsewhere in the file. A broken or truncated dictionary is a [DamageError]. Call ResetAt after it.
func (r *Reader) ReadDict(f io.ReaderAt) ([]byte, error) {
	r.ResetAt(f, 0, 1<<62)
	magic, err := r.src.Peek(len(zdict.Magic))
	if err == nil && string(magic) == zdict.Magic {
		var dict []byte
		if dict, err = r.src.skippable(true); err == nil {
			dict, err = unpackDict(dict)
		}
		if err == nil {
			return dict, nil
		}
		err = r.damage(err)
	}
	if failed := r.src.under.err; failed != nil {
		return nil, fmt.Errorf("warc: read dictionary: %w", failed)
	}
	if err == io.EOF {
		err = nil
	}
	return nil, err
}
