package programs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// listen is the address of the crawler's metrics.
const listen = "127.0.0.1:18099"

// Watch runs fullcrawler without delays or limits of hosts, and takes samples. It stops the crawler
// after the first one with which it has done enough.
func Watch(dir string, every time.Duration, enough func(Sample) bool, args ...string) (samples []Sample, err error) {
	cmd, err := Start(dir, "fullcrawler", append([]string{"-hosts", "hosts", "-out", "out", "-delay", "0",
		"-scope", "any", "-host-pages", "0", "-depth", "-1", "-listen", listen}, args...)...)
	if err != nil {
		return nil, err
	}
	begun, ended := time.Now(), make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return nil, fmt.Errorf("the crawler exited too early: %w; output:\n%s", err, Output(dir, "fullcrawler"))
		case <-time.After(every):
		}
		s, err := TakeSample(listen, cmd.Process.Pid)
		if err != nil {
			continue // it has not started, or has exited
		}
		s.After = time.Since(begun)
		fmt.Fprintf(os.Stderr, "%v: %.0f visits, %.0f pages known, %.0f MB\n", s.After.Round(time.Second), s.Visits, s.Known, s.Resident/1e6)
		samples = append(samples, s)
		if enough(s) {
			return samples, errors.Join(cmd.Process.Signal(syscall.SIGINT), <-ended)
		}
	}
}
