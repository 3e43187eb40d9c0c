package satstore

import (
	"errors"
	"syscall"

	"github.com/spinneret-go/spinneret/satstore/internal/extent"
)

// addMessage appends a message to the bucket of its record. If the record is gone, it is dropped.
func (s *state) addMessage(seq uint64, m message) {
	b := s.bucketOf(seq)
	if b == nil {
		return
	}
	if s.split.leadsTo(b) {
		// Older messages for the record may still be in the bucket that is being split. They come
		// first.
		b = s.split.bucket
	}
	s.addMessageTo(b, seq, m)
}

func (s *state) addMessageTo(b *bucket, seq uint64, m message) {
	encoded := appendMessage(nil, seq, m)
	s.scratch = b.messages.Append(s.pool, len(encoded), s.scratch, func(dst []byte) []byte {
		return append(dst, encoded...)
	})
	if !b.loaded {
		return
	}
	s.mailed.Add(1)
	if !m.delete {
		b.mail.post(seq, m)
		s.waiting += m.size()
	}
}

// dropMail drops the first n messages for a record from memory.
func (s *state) dropMail(b *bucket, seq uint64, n int) {
	for _, m := range b.mail[seq][:n] {
		s.waiting -= m.size()
	}
	if rest := b.mail[seq][n:]; len(rest) > 0 {
		b.mail[seq] = rest
	} else {
		delete(b.mail, seq)
	}
}

// loadMail reads the messages for a bucket that is due. It holds no lock while it reads. Messages
// that are damaged are lost; Due reports each block. Those that the disk cannot read are an error, except
// at the last try.
func (s *Store) loadMail(b *bucket, last bool) error {
	var mail mailbox
	var damage []error
	keep := keepDamage(&damage)
	damaged := func(from, to uint64, err error) error {
		if errors.Is(err, syscall.EIO) && !last {
			return err
		}
		return keep(from, to, err)
	}
	r := extent.NewReader(s.file, &s.mu, nil)
	for read := uint64(0); ; {
		s.mu.Lock()
		count := b.messages.Count()
		if b.dead || read == count {
			s.adoptMail(b, mail)
			s.keepDamage(damage...)
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		_, err := walkMessages(r, b, read, count, damaged, func(_, seq uint64, m message) bool {
			if !m.delete && s.has(b, seq) { // a bucket may have messages for records that left it long ago
				mail.post(seq, m)
			}
			return true
		})
		if err != nil {
			return err
		}
		read = count
	}
}

// adoptMail gives a bucket its messages. Some records may have been deleted since they were read, and
// nobody would drop the messages for these. It requires that Store.mu is held.
func (s *Store) adoptMail(b *bucket, mail mailbox) {
	if b.dead {
		return
	}
	for seq := range mail {
		if s.places.get(seq) != b.number {
			delete(mail, seq)
		}
	}
	b.mail, b.loaded = mail, true
	s.waiting += mail.size()
}

// has reports whether a record is in a bucket.
func (s *Store) has(b *bucket, seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places.get(seq) == b.number
}
