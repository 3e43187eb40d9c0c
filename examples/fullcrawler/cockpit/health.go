package cockpit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// errUnhealthy is wrapped by the errors of health.
var errUnhealthy = errors.New("not healthy")

// healthWait is how long the live page may take to answer.
const healthWait = 5 * time.Second

// health tells a supervisor whether a crawl runs and, if it has a live page, answers. A crawl that
// waits for the network is healthy: a restart would not help.
func health(ctx context.Context, in call) error {
	text, err := os.ReadFile(filepath.Join(in.dir, holderName))
	var h holder
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	// A page may be that of another crawl, which listens where a killed one did.
	if err != nil || !held(in.dir) && (seesLocks || h.Page == "") {
		return fmt.Errorf("%w: no crawl runs in %s", errUnhealthy, in.dir)
	}
	if h.Command != crawlCommand {
		return fmt.Errorf("%w: no crawl runs in %s, but process %d does: %s, since %s", errUnhealthy, in.dir, h.PID, h.Command, moment(h.Since))
	}
	state := "its live page (-listen) would tell more"
	if h.Page != "" {
		state = "its live page tells more: " + h.Page
		if err := askPage(ctx, in.dir, h.Page); err != nil {
			return fmt.Errorf("%w: process %d: %w", errUnhealthy, h.PID, err)
		}
	}
	fmt.Fprintf(in.out, "healthy: process %d, %s since %s; %s\n", h.PID, h.Command, moment(h.Since), state)
	return nil
}

// askPage returns an error unless a live page answers.
func askPage(ctx context.Context, dir, page string) error {
	ctx, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page+"metrics", nil)
	if err != nil {
		return err
	}
	if token, err := os.ReadFile(filepath.Join(dir, TokenName)); err == nil {
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", page, resp.Status)
	}
	return nil
}
