//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/fetch/webtest"
)

// TestReadOnlyDirectories runs the commands as a user that may only read the directory.
func TestReadOnlyDirectories(t *testing.T) {
	if dir := os.Getenv("CRAWL_TO_READ"); dir != "" {
		os.Exit(command(t.Context(), strings.Fields(os.Getenv("CRAWL_ARGS")), os.Stdout, os.Stderr))
	}
	t.Parallel()
	web := serve(t, webtest.Options{Seed: 42, Hosts: 3, Pages: 4})
	cfg := testConfig(t, web)
	crawlWeb(t, web, cfg)
	for dir := cfg.Out; dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	scratch, err := os.MkdirTemp("", "nobodys")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(scratch) })
	require.NoError(t, os.Chmod(scratch, 0o777))
	self := filepath.Join(scratch, "fullcrawler.test")
	program, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(self, program, 0o755))
	as := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		as.Credential = &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}
	} else {
		t.Cleanup(func() { _ = os.Chmod(cfg.Out, 0o755) })
	}
	child := func(args string) (string, error) {
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestReadOnlyDirectories$")
		cmd.Env = append(os.Environ(), "CRAWL_TO_READ="+cfg.Out, "CRAWL_ARGS="+args, "TMPDIR="+scratch)
		cmd.SysProcAttr, cmd.Dir = as, scratch
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	require.NoError(t, filepath.WalkDir(cfg.Out, func(path string, entry fs.DirEntry, err error) error {
		mode := fs.FileMode(0o644)
		if entry.IsDir() {
			mode = 0o755
		}
		return errors.Join(err, os.Chmod(path, mode))
	}))
	if os.Getuid() != 0 {
		require.NoError(t, os.Chmod(cfg.Out, 0o555))
	}
	before := tree(t, cfg.Out)
	for args, want := range map[string]string{
		"check -out " + cfg.Out:                              "permission denied: run check as the owner of the crawl",
		"explain -out " + cfg.Out + " " + cfg.Seeds[0]:       "as the owner",
		"snapshot -out " + cfg.Out:                           "http://h00000.vweb.test/",
		"export -out " + cfg.Out + " cdxj " + scratch + "/x": "",
		"export -out " + cfg.Out + " wacz " + scratch + "/y": "",
		"scan -workers 1 -out " + cfg.Out + " false":         "killed its worker",
		"repair -out " + cfg.Out:                             "permission denied",
	} {
		out, _ := child(args)
		require.Contains(t, out, want, args)
	}
	wacz, err := os.Stat(filepath.Join(scratch, "y"))
	require.NoError(t, err)
	require.Greater(t, wacz.Size(), int64(10_000), "with the pages themselves")
	require.Equal(t, before, tree(t, cfg.Out))
	c, err := newCrawler(cfg, on(web))
	if os.Getuid() != 0 {
		return // this user cannot run a crawl there either
	}
	require.NoError(t, err)
	defer c.close()
	out, err := child("check -out " + cfg.Out)
	require.Error(t, err)
	require.Contains(t, out, fmt.Sprint("process ", os.Getpid()), "also to another user")
}
