package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/spinneret-go/spinneret/archive/internal/zdict"
	"github.com/spinneret-go/spinneret/archive/scan"
	"github.com/spinneret-go/spinneret/archive/warc"
)

// metadata is the [scan.Document.Meta] of a document.
type metadata struct {
	URL    string    `json:"url"`
	Time   time.Time `json:"time"`
	Status int       `json:"status"`
	Media  string    `json:"media,omitempty"`
	Digest string    `json:"digest,omitempty"`
	File   string    `json:"file"`
	Offset int64     `json:"offset"`
}

// Scan sends the documents of the snapshot to workers, and returns their results as [scan.Run]
// does. Documents stay compressed: a worker gets a WARC file of one record. A [scan.Filter] reads
// the body without its content coding, of up to [MaxBody] bytes. [scan.Document.Meta] is JSON with
// url, time, status, media, digest, file and offset. For functions and in results,
// [scan.Document.Value] is the [Version].
//
// A document that cannot be read, or is larger than [MaxRaw], is not sent: its result has an error. Only
// who decompresses the others finds damage in them, or that it has put another record there: a filter
// fails then, and other workers may compare url and digest with their record.
func (s *Snapshot) Scan(ctx context.Context, work scan.Work, opts scan.Options) iter.Seq2[
	scan.Result, error] {
	return scan.Run(ctx, s.documents, work, opts)
}

// documents yields the documents for the workers.
func (s *Snapshot) documents(yield func(scan.Document, error) bool) {
	var data []byte
	for doc, err := range s.Documents() {
		if err != nil && doc.URL == "" {
			yield(scan.Document{}, err)
			return
		}
		if err == nil && doc.Raw == nil {
			err = fmt.Errorf("archive: record of %d bytes is too large to be sent",
				doc.Content.Length)
		}
		v := doc.Version // a worker decodes later
		send := scan.Document{Value: v, Data: doc.Raw, Err: err,
			Decode: func(file []byte) ([]byte, error) { return decodeRaw(file, &v) }}
		if len(doc.dict) > 0 {
			data = append(zdict.Append(data[:0], doc.dict), doc.Raw...)
			send.Data = data
		}
		send.Meta, err = json.Marshal(metadata{doc.URL, doc.Time, doc.Status, doc.Media,
			doc.Digest(), doc.Content.File, doc.Content.Offset})
		if !yield(send, err) {
			return
		}
	}
}

// decodeRaw returns the body of a version in a WARC file of one record, without its content coding.
func decodeRaw(file []byte, v *Version) ([]byte, error) {
	r := warc.NewReader(bytes.NewReader(file), warc.ReaderOptions{Verify: true})
	defer r.Close()
	rec, err := r.Next()
	if err != nil {
		return nil, err
	}
	if err := v.confirm(rec); err != nil {
		return nil, err
	}
	return readBody(rec, v)
}
