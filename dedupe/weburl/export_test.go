package weburl

// TrackingNames returns the names of the parameters that DropTracking drops, and one name for each
// prefix.
func TrackingNames() (names []string) {
	for name := range isTrackingName {
		names = append(names, name)
	}
	for _, prefix := range trackingPrefixes {
		names = append(names, prefix+"x")
	}
	return names
}
