package satstore

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/internal/vfs"
)

func init() {
	roles["mounted"] = fillMounted
	roles["limited"] = fillLimited
	roles["btrfs"] = fillBtrfs
}

// errCannot means that this process is not permitted to create a small disk.
var errCannot = errors.New("may not")

const smallDisk = 12 << 20

// TestSmallDisk fills a disk that is really full: a tmpfs of 12 MiB, in the mount namespace of
// another process. Where that is not permitted, it limits the size of files instead.
func TestSmallDisk(t *testing.T) {
	t.Parallel()
	mounted := startRole("mounted", t.TempDir())
	mounted.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		mounted.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		mounted.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		mounted.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	said, err := output(mounted)
	if err == nil {
		t.Log(said)
		return
	}
	require.Contains(t, said, errCannot.Error(), "the process may mount, but failed")
	t.Log("a tmpfs cannot be mounted:", said)
	said, err = output(startRole("limited", t.TempDir()))
	if strings.Contains(said, errCannot.Error()) {
		t.Skip("neither a tmpfs nor a file size limit is permitted:", said)
	}
	require.NoError(t, err, said)
}

// output returns the output of a process, or errCannot for one that cannot be started.
func output(cmd *exec.Cmd) (string, error) {
	b, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fmt.Sprint(errCannot, ": ", err), err
	}
	return string(b), err
}

func fillMounted(dir string) error {
	// Mounts of this process must not be visible elsewhere.
	err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	if err == nil {
		err = syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", smallDisk))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errCannot, err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, smallDisk/4), 0o600); err != nil {
		return err
	}
	return fill(filepath.Join(dir, "store"), syscall.ENOSPC, func() error {
		return os.Remove(ballast)
	})
}

// TestCopyOnWriteDisk fills a copy-on-write file system, so that a write to the mapped file finds
// it full: a btrfs in a file, in the mount namespace of another process. The write raises a signal
// that would end the process, and must become ErrReadOnly.
func TestCopyOnWriteDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a file")
	}
	for _, tool := range []string{"mkfs.btrfs", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	mounted := startRole("btrfs", t.TempDir())
	mounted.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	said, err := output(mounted)
	if err != nil && strings.Contains(said, errCannot.Error()) {
		t.Skip("btrfs cannot be mounted: ", said)
	}
	require.NoError(t, err, said)
	t.Log(said)
}

func fillBtrfs(dir string) error {
	err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	image, at := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	for _, command := range [][]string{
		{"truncate", "-s", "120M", image}, {"mkfs.btrfs", "-q", "--mixed", image},
		{"mkdir", at}, {"mount", "-o", "loop,nodatasum", image, at},
	} {
		if err == nil {
			var said []byte
			said, err = exec.Command(command[0], command[1:]...).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%q: %s: %w", command, said, err)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errCannot, err)
	}
	defer syscall.Unmount(at, 0)
	return faultWhenFull(at)
}

// faultWhenFull fills the disk while all changes still go to memory, so that the mapped file is the
// first to fail.
func faultWhenFull(dir string) error {
	o := Options{Start: time.Unix(0, 0), Commit: -1}
	s, err := Open(filepath.Join(dir, "store"), o)
	if err != nil {
		return err
	}
	want := map[string]string{}
	for i := range 100 {
		id := fmt.Sprint("https://a.test/", i)
		if _, err := s.Add(id, time.Unix(0, 0), nil); err != nil {
			return err
		}
		want[id] = "0 "
	}
	syscall.Sync() // use up the space reserved for the mapped file
	ballast := filepath.Join(dir, "ballast")
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			err = appendTo(ballast, make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
	}
	syscall.Sync()
	added := len(want)
	for err = nil; err == nil && added < 1_000_000; {
		id := fmt.Sprint("https://a.test/", added)
		if _, err = s.Add(id, time.Unix(0, 0), nil); err == nil {
			want[id] = "0 "
			added++
		}
	}
	if !errors.Is(err, ErrReadOnly) || !errors.Is(err, vfs.ErrFault) {
		return fmt.Errorf("after %d records: %w", added, err)
	}
	fmt.Println(added, "records:", err)
	if err := holds(s, want); err != nil {
		return err
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	syscall.Sync()
	if err := s.Sync(); err != nil {
		return fmt.Errorf("sync with free space: %w", err)
	}
	if _, err := s.Add("https://a.test/more", time.Unix(0, 0), nil); err != nil {
		return err
	}
	want["https://a.test/more"] = "0 "
	return errors.Join(holds(s, want), s.Check(), s.Close())
}

func appendTo(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func fillLimited(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit)
	if err == nil {
		err = syscall.Setrlimit(syscall.RLIMIT_FSIZE,
			&syscall.Rlimit{Cur: smallDisk / 2, Max: limit.Max})
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errCannot, err)
	}
	return fill(dir, syscall.EFBIG, func() error {
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
	})
}

// fill adds records until the disk is full, opens the store twice as after a kill, makes room, and
// continues. Each time all acknowledged records must be there; refused ones may be.
func fill(dir string, full error, makeRoom func() error) error {
	o := Options{Start: at(1000), Buffer: 256 << 10, test: testOptions{pending: 64 << 10}}
	s, err := Open(dir, o)
	if err != nil {
		return err
	}
	want, err := fillUp(s)
	if !errors.Is(err, full) || !errors.Is(err, ErrReadOnly) {
		return fmt.Errorf("%d records were added, then: %w", len(want), err)
	}
	fmt.Println(len(want), "records:", err)
	for range 2 {
		if err := holds(s, want); err != nil {
			return err
		}
		if _, err := s.Add("https://a.test/more", at(1000), nil); !errors.Is(err, ErrReadOnly) {
			return fmt.Errorf("Add on a full disk: %w", err)
		}
		abandon(s)
		if s, err = Open(dir, o); err != nil {
			return fmt.Errorf("open on a full disk: %w", err)
		}
		if s.failed == nil {
			break // removing the replayed log made room
		}
	}
	if err := makeRoom(); err != nil {
		return err
	}
	if err := s.Sync(); err != nil {
		return fmt.Errorf("sync with free space: %w", err)
	}
	if _, err := s.Add("https://a.test/more", at(1000), []byte("more")); err != nil {
		return err
	}
	want["https://a.test/more"] = "1000 more"
	return errors.Join(holds(s, want), s.Check(), s.Close())
}

// fillUp adds records until an error, and returns both.
func fillUp(s *Store) (map[string]string, error) {
	added := map[string]string{}
	for i := range 1_000_000 {
		id := fmt.Sprint("https://a.test/", i)
		data := strings.Repeat(fmt.Sprint(i, " "), 40)
		if _, err := s.Add(id, at(int64(1000+i%700)), []byte(data)); err != nil {
			return added, err
		}
		added[id] = fmt.Sprint(1000+i%700, " ", data)
	}
	return added, nil
}

// holds compares a store with its expected contents. It may also have the record that was refused
// last.
func holds(s *Store, want map[string]string) error {
	got := map[string]string{}
	for item, err := range s.Scan() {
		if err != nil {
			return err
		}
		got[item.ID] = fmt.Sprint(slotAt(item.At), " ", string(item.Data))
	}
	refused := fmt.Sprint("https://a.test/", len(want))
	if _, found := want[refused]; !found {
		delete(got, refused)
	}
	if !maps.Equal(want, got) {
		return fmt.Errorf("%d records were acknowledged, and %d are there", len(want), len(got))
	}
	return nil
}
