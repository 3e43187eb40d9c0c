package satstore

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/spinneret-go/spinneret/satstore/internal/disk"
)

// places is the bucket index: the number of the bucket that holds a record, by the record's
// sequence number, in 16 bits. 0 stands for none. It grows by pages, so that it is never copied.
type places struct {
	pages [][]uint16
}

const placesPage = 64 << 10

func (p *places) set(seq uint64, number uint16) {
	for seq/placesPage >= uint64(len(p.pages)) {
		p.pages = append(p.pages, make([]uint16, placesPage))
	}
	p.pages[seq/placesPage][seq%placesPage] = number
}

func (p *places) get(seq uint64) uint16 {
	if seq/placesPage >= uint64(len(p.pages)) {
		return 0
	}
	return p.pages[seq/placesPage][seq%placesPage]
}

// These constants are on disk. Do not change them; add a version.
const (
	placesMagic  = "SATPLC1\n"
	placesHeader = 8 + 8 + disk.SumSize // magic, pages, checksum
)

func placesName(number uint64) string { return fmt.Sprintf("places-%08d", number) }

// savedPlaces says which file holds the bucket index as of a checkpoint. After a crash, only what
// was written later has to be read to bring it up to date.
type savedPlaces struct {
	number     uint64 // of the file; 0 if there is none
	generation uint32 // of the checkpoint
	due        bool   // to be saved with the next checkpoint
	written    int64  // bytes in extents since
}

// placesShare is how many bytes of records are written before the bucket index is saved again, for
// each byte of it: saving adds 1/16 to what is written, and that many bytes are read by recovery.
const placesShare = 16

// savePlaces writes the bucket index if it is time to. The file may say where a record was that has
// been deleted since, even of a number that another bucket has by now: nobody asks for that record,
// as no index has its id.
func (s *Store) savePlaces() (savedPlaces, error) {
	saved := s.saved
	size := int64(len(s.places.pages)) * placesPage * 2
	if size == 0 || !saved.due && saved.written < max(placesShare*size, s.o.Buffer) {
		return saved, nil
	}
	saved = savedPlaces{number: s.saved.number + 1, generation: s.generation + 1}
	f, err := s.fs.Create(placesName(saved.number))
	if err != nil {
		return s.saved, fmt.Errorf("satstore: create places: %w", err)
	}
	err = s.places.write(f, saved.number)
	if err == nil && !s.o.NoSync {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return saved, fmt.Errorf("satstore: write places: %w", err)
	}
	return saved, nil
}

func (p *places) write(f io.WriterAt, number uint64) error {
	b := append(make([]byte, 0, 2*placesPage+disk.SumSize), placesMagic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(p.pages)))
	b = binary.LittleEndian.AppendUint32(b, placesSum(number, 0, b))
	at := int64(0)
	for i := range p.pages {
		if _, err := f.WriteAt(b, at); err != nil {
			return err
		}
		at += int64(len(b))
		b = b[:0]
		for _, n := range p.pages[i] {
			b = binary.LittleEndian.AppendUint16(b, n)
		}
		b = binary.LittleEndian.AppendUint32(b, placesSum(number, uint64(i+1), b))
	}
	_, err := f.WriteAt(b, at)
	return err
}

// placesSum includes which piece this is, so that none is taken for another.
func placesSum(number, piece uint64, b []byte) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:8], number)
	binary.LittleEndian.PutUint64(place[8:], piece)
	return disk.SumOn(disk.Sum(place[:]), b)
}

// read undoes write.
func (p *places) read(f io.ReaderAt, number uint64) error {
	b := make([]byte, 2*placesPage+disk.SumSize)
	at, pages := int64(0), uint64(0)
	for piece := uint64(0); piece <= pages; piece++ {
		size := 2*placesPage + disk.SumSize
		if piece == 0 {
			size = placesHeader
		}
		if err := disk.ReadFull(f, placesName(number), b[:size], at); err != nil {
			return err
		}
		body := b[:size-disk.SumSize]
		if placesSum(number, piece, body) != binary.LittleEndian.Uint32(b[size-disk.SumSize:]) {
			return disk.Corrupt(placesName(number), at, "wrong checksum")
		}
		at += int64(size)
		if piece == 0 {
			if string(b[:8]) != placesMagic {
				return disk.Corrupt(placesName(number), 0, "no places, or of another version")
			}
			pages = binary.LittleEndian.Uint64(b[8:])
			continue
		}
		page := make([]uint16, placesPage)
		for i := range page {
			page[i] = binary.LittleEndian.Uint16(body[2*i:])
		}
		p.pages = append(p.pages, page)
	}
	return nil
}
