package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinneret-go/spinneret/examples/fullcrawler/cockpit"
)

// TestDeployFilesUseValidFlags compares the flags in deploy with the help.
func TestDeployFilesUseValidFlags(t *testing.T) {
	var help bytes.Buffer
	cockpit.Help(&help)
	for name, command := range map[string]string{
		"deploy/fullcrawler.service": `(?m)^ExecStart=.*$`,
		"deploy/Containerfile":       `(?m)^ENTRYPOINT.*$`,
	} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		flags := regexp.MustCompile(`[ "]-([a-z-]+)`).FindAllSubmatch(regexp.MustCompile(command).Find(text), -1)
		require.NotEmpty(t, flags, name)
		for _, flag := range flags {
			require.Regexp(t, `(?m)^  -`+string(flag[1])+`\b`, help.String(), name)
		}
	}
}
