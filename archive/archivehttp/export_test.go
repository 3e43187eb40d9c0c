package archivehttp

// Receive receives a head byte by byte.
func Receive(head string) {
	var h heads
	for i := range len(head) {
		h.receive([]byte{head[i]})
	}
}
