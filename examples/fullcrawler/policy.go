package main

import (
	"fmt"
	"time"

	"github.com/spinneret-go/spinneret/revisit"
)

// A policy says when to come back to a page.
type policy interface {
	Next(revisit.History) time.Duration
}

// parsePolicy makes the policy of a name, or of an interval such as 24h.
func parsePolicy(name string, price float64, least, most time.Duration) (policy, error) {
	switch name {
	case "bayes":
		return revisit.Bayes{Price: price, Min: least, Max: most}, nil
	case "mle":
		return revisit.MLE{Alpha: price, Min: least, Max: most}, nil
	case "aimd":
		return revisit.AIMD{Min: least, Max: most}, nil
	}
	every, err := time.ParseDuration(name)
	if err != nil || every <= 0 {
		return nil, fmt.Errorf("-revisit %q: want bayes, mle, aimd or an interval such as 24h", name)
	}
	return revisit.Every(every), nil
}
