package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/durable"
	"github.com/spinneret-go/spinneret/internal/vfs"
)

var torture = flag.Duration("torture", 0, "how long to torture tables, with random seeds")

// TestMain makes leaves and reads so small that all paths are common.
func TestMain(m *testing.M) {
	leafSize, firstWindow, scanWindow = 40, 32, 200
	os.Exit(m.Run())
}

// TestTorture plays random histories of a table and of a model, a map. Each history is played
// without faults, and then again with a fault at each of its steps: the power fails, or the disk
// does once, twice in turn, or after a pause. After a crash, the table must have exactly what it had
// when the state that is found was saved, and that state must not be older than the last one whose
// saving succeeded.
func TestTorture(t *testing.T) {
	if *torture > 0 {
		for end := time.Now().Add(*torture); time.Now().Before(end) && !t.Failed(); {
			playAll(t, rand.Uint64())
		}
		return
	}
	for seed := range uint64(15) {
		playAll(t, seed)
	}
}

var errDiskFull = fmt.Errorf("planned: %w", syscall.ENOSPC)
var errDisk = fmt.Errorf("planned: %w", syscall.EIO)

func playAll(t *testing.T, seed uint64) {
	steps := play(t, seed, 0)
	for at := 1; at <= steps; at++ {
		for _, faults := range [][]error{
			{vfs.ErrPower}, {errDisk}, {errDiskFull, errDisk}, {errDisk, nil, vfs.ErrPower},
			{errDiskFull, nil, nil, nil, errDisk},
		} {
			play(t, seed, at, faults...)
		}
	}
}

// magicTest is that of the player's manifest.
const (
	magicTest = "SPNTORT1"
	manifest  = "MANIFEST"
)

// A player owns a table.
type player struct {
	t       *testing.T
	random  *rand.Rand
	options Options
	disk    *disk
	table   *Table
	now     model
	saved   []model // by the generation of the state
	acked   int     // the generation that must survive
	held    []*held // unfinished reads
	failing bool    // a file may be left over
	down    bool    // the power has failed
}

type model map[string]string

// play returns the number of steps of the history of a seed.
func play(t *testing.T, seed uint64, at int, faults ...error) (steps int) {
	random := rand.New(rand.NewPCG(seed, 1))
	p := &player{
		t: t, random: random, options: randomOptions(random), disk: watch(vfs.NewMem()),
		now: model{}, saved: []model{{}},
	}
	ok := false
	defer func() {
		if !ok || t.Failed() {
			t.Errorf("seed %d, %v at step %d", seed, faults, at)
		}
	}()
	p.recover()
	p.disk.FailAt(at, faults...)
	for range 20 + random.IntN(20) {
		if p.down {
			break
		}
		p.turn()
	}
	steps = p.disk.Steps()
	p.disk.FailAt(0)
	p.crash()
	for range 5 {
		p.turn()
	}
	p.crash()
	p.close()
	ok = true
	return steps
}

func randomOptions(random *rand.Rand) Options {
	o := Options{
		Name: "t-", Block: random.IntN(3) * 20, FilterBits: random.IntN(12), FullBits: random.IntN(8),
		Segment: 1 + random.Int64N(6), Steps: 1 + random.Int64N(8),
		Memory: random.Int64N(3) * 300,
	}
	if random.IntN(2) == 0 {
		o.Key, o.Value = 2, 1+random.IntN(3)
	}
	if random.IntN(3) == 0 {
		o.Prefix = func([]byte) int { return 1 }
	} else {
		o.Dead = dead
	}
	return o
}

func dead(value []byte) bool { return len(value) > 0 && value[0] == 0 }

// turn does something.
func (p *player) turn() {
	switch n := p.random.IntN(20); {
	case n < 5:
		p.write()
	case n < 11:
		p.step(1 + p.random.IntN(8))
	case n < 14:
		p.save()
	case n == 14:
		p.hold()
	case n == 15:
		p.readHeld()
	case n == 16:
		p.check(20)
	case n < 19:
		p.close()
		p.recover()
	default:
		p.crash()
	}
}

// failed reports whether an operation failed, which only planned faults may cause.
func (p *player) failed(err error) bool {
	if err == nil {
		return false
	}
	if !errors.Is(err, errDiskFull) && !errors.Is(err, errDisk) {
		require.ErrorIs(p.t, err, vfs.ErrPower)
	}
	p.down = p.down || errors.Is(err, vfs.ErrPower)
	p.failing = true
	return true
}

func (p *player) key() []byte {
	if p.options.Key > 0 {
		return []byte{byte(p.random.IntN(3)), byte(p.random.IntN(20))}
	}
	key := make([]byte, 1+p.random.IntN(4), 40)
	for i := range key {
		key[i] = 'a' + byte(p.random.IntN(3))
	}
	return append(key, strings.Repeat("z", p.random.IntN(2)*p.random.IntN(30))...)
}

func (p *player) value() []byte {
	n := p.options.Value
	if p.options.Key == 0 {
		n = p.random.IntN(9)
	}
	value := make([]byte, n)
	for i := range value {
		value[i] = byte(p.random.IntN(3) * p.random.IntN(256))
	}
	return value
}

// pairs is a source of sorted entries.
type pairs []Pair

func (s *pairs) Next() (key, value []byte, err error) {
	if len(*s) == 0 {
		return nil, nil, nil
	}
	first := (*s)[0]
	*s = (*s)[1:]
	return first.Key, first.Value, nil
}

func (m model) pairs() (all pairs) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, Pair{[]byte(key), []byte(m[key])})
	}
	return all
}

func (p *player) write() {
	added := model{}
	for range p.random.IntN(30) {
		added[string(p.key())] = string(p.value())
	}
	source := added.pairs()
	if p.failed(p.table.Write(&source)) {
		return
	}
	for key, value := range added {
		if p.options.Dead != nil && dead([]byte(value)) {
			delete(p.now, key)
		} else {
			p.now[key] = value
		}
	}
}

// step also looks at what a merge has moved in part.
func (p *player) step(n int) {
	for range n {
		if more, err := p.table.Step(); p.failed(err) || !more {
			break
		}
	}
	if p.random.IntN(3) == 0 {
		p.check(30)
	}
	p.checkFiles()
}

// checkFiles checks that passed files do not stay on disk.
func (p *player) checkFiles() {
	if p.failing || !p.disk.idle || len(p.held) > 0 {
		return
	}
	st := p.table.State()
	allowed := p.table.Garbage() + len(st.Names("t-"))
	for _, r := range st.Runs {
		allowed += min(r.Inputs, 1) // the unfinished segment of a merge
	}
	names, err := p.disk.List()
	require.NoError(p.t, err)
	files := 0
	for _, name := range names {
		if _, ours := p.table.fileNumber(name); ours {
			files++
		}
	}
	require.LessOrEqual(p.t, files, allowed)
}

func (p *player) save() {
	st := p.table.State()
	body := binary.LittleEndian.AppendUint32(nil, uint32(len(p.saved)))
	p.saved = append(p.saved, maps.Clone(p.now))
	if p.random.IntN(2) == 0 { // a merge does not wait for the manifest
		p.step(1 + p.random.IntN(8))
	}
	err := durable.Replace(p.disk, manifest, durable.Seal(magicTest, st.Append(body)))
	switch {
	case !p.failed(err):
		p.acked = len(p.saved) - 1
		p.table.Saved(st)
	case !errors.Is(err, durable.ErrUnknown):
		p.saved[len(p.saved)-1] = nil // it must never be found
	case !p.down: // only reading again tells what was saved
		p.close()
		p.recover()
	}
}

// crash cuts the power, and recovers. Further failures may follow.
func (p *player) crash() {
	p.close()
	p.disk = watch(p.disk.Crash(p.random))
	p.down = false
	p.recover()
}

// recover opens what is on disk, and compares it with the model.
func (p *player) recover() {
	for faults := p.random.IntN(3); faults > 0 && p.disk.idle; faults-- {
		p.disk.FailAt(p.disk.Steps()+1+p.random.IntN(3), errDisk)
		if p.open() == nil {
			p.table.Close()
		}
		p.disk.FailAt(0)
	}
	err := p.open()
	for try := 0; err != nil && try < 5 && !p.down; try++ { // a planned fault
		require.True(p.t, p.failed(err))
		err = p.open()
	}
	if p.down {
		p.down = false
		p.disk = watch(p.disk.Crash(p.random))
		err = p.open()
	}
	require.NoError(p.t, err)
	names, err := p.disk.List()
	require.NoError(p.t, err)
	allowed := append(p.table.State().Names("t-"), manifest, manifest+durable.NewName)
	for _, name := range names {
		require.Contains(p.t, allowed, name)
	}
	p.check(30)
}

// open removes what no state names.
func (p *player) open() error {
	// The process before may have replaced the manifest without knowing it.
	if err := p.disk.Sync(); p.failed(err) {
		return err
	}
	b, err := durable.ReadFile(p.disk, manifest)
	generation, st := 0, State{}
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(p.t, err)
		body, err := durable.Unseal(manifest, 0, magicTest, b)
		require.NoError(p.t, err)
		var rest []byte
		generation = int(binary.LittleEndian.Uint32(body))
		st, rest, err = TakeState(body[4:], manifest)
		require.NoError(p.t, err)
		require.Empty(p.t, rest)
	}
	require.GreaterOrEqual(p.t, generation, p.acked)
	require.Less(p.t, generation, len(p.saved))
	require.NotNil(p.t, p.saved[generation])
	p.failing = false
	p.acked, p.now = generation, maps.Clone(p.saved[generation])
	if p.table, err = Open(p.disk, p.options, st); err != nil {
		require.NoError(p.t, err)
	}
	if err = p.table.Sweep(); p.failed(err) {
		p.table.Close()
	}
	return err
}

// close also checks that nothing stays open.
func (p *player) close() {
	held := p.held
	p.held = nil
	if p.random.IntN(2) == 0 { // reads may outlive the table
		defer func() {
			for _, h := range held {
				p.finish(h)
			}
			require.Zero(p.t, p.disk.open.Load(), "open files")
			require.Zero(p.t, p.table.used.Load(), "memory of closed files")
		}()
	} else {
		for _, h := range held {
			p.finish(h)
		}
	}
	p.table.Close()
	_, err := p.table.Step()
	require.NoError(p.t, err)
	require.ErrorIs(p.t, p.table.Find(nil, nil), ErrClosed)
}

// A held read goes on while the table changes.
type held struct {
	want    pairs
	merger  *Merger
	release func()
}

func (p *player) hold() {
	low := p.key()
	sources, release, err := p.table.Scan(low)
	require.NoError(p.t, err)
	m, err := NewMerger(sources...)
	require.NoError(p.t, err)
	want := p.now.pairs()
	want = slices.DeleteFunc(want, func(e Pair) bool { return bytes.Compare(e.Key, low) < 0 })
	p.held = append(p.held, &held{want, m, release})
}

func (p *player) readHeld() {
	for _, h := range p.held {
		p.read(h, p.random.IntN(5))
	}
}

// read compares some entries, and reports whether there may be more.
func (p *player) read(h *held, n int) bool {
	for range n {
		key, value := h.merger.Entry()
		for ; p.options.Dead != nil && key != nil && dead(value); key, value = h.merger.Entry() {
			require.NoError(p.t, h.merger.Next())
		}
		if key == nil {
			require.Empty(p.t, h.want)
			return false
		}
		require.NotEmpty(p.t, h.want)
		require.Equal(p.t, h.want[0], Pair{key, value})
		h.want = h.want[1:]
		require.NoError(p.t, h.merger.Next())
	}
	return true
}

func (p *player) finish(h *held) {
	for p.read(h, 100) {
	}
	h.release()
}

// check compares the table with the model.
func (p *player) check(n int) {
	sources, release, err := p.table.Scan(nil)
	require.NoError(p.t, err)
	m, err := NewMerger(sources...)
	require.NoError(p.t, err)
	p.finish(&held{p.now.pairs(), m, release})

	var keys [][]byte
	for range n {
		keys = append(keys, p.key())
	}
	slices.SortFunc(keys, bytes.Compare)
	got := make([]*string, len(keys))
	if p.options.Prefix == nil {
		require.NoError(p.t, p.table.Find(keys, func(i int, value []byte) {
			if p.options.Dead == nil || !dead(value) {
				value := string(value)
				got[i] = &value
			}
		}))
		for i, key := range keys {
			want, found := p.now[string(key)]
			require.Equal(p.t, found, got[i] != nil, "%q", key)
			require.True(p.t, !found || *got[i] == want)
		}
	}
	if p.options.Dead == nil {
		p.checkAround(keys)
	}
}

func (p *player) checkAround(keys [][]byte) {
	all := p.now.pairs()
	var n Neighbors
	for _, key := range keys {
		n.Reset(key, 1)
		require.NoError(p.t, p.table.Around(&n))
		at, _ := slices.BinarySearchFunc(all, key, func(e Pair, key []byte) int {
			return bytes.Compare(e.Key, key)
		})
		if at > 0 && all[at-1].Key[0] == key[0] {
			require.Equal(p.t, string(all[at-1].Key), string(n.Below.Key))
			require.Equal(p.t, string(all[at-1].Value), string(n.Below.Value))
		} else {
			require.Empty(p.t, n.Below.Key)
		}
		if at < len(all) && all[at].Key[0] == key[0] {
			require.Equal(p.t, string(all[at].Key), string(n.Next))
		} else {
			require.Empty(p.t, n.Next)
		}
	}
}
