module github.com/spinneret-go/spinneret

go 1.26.0

require (
	github.com/andybalholm/brotli v1.2.8
	github.com/bits-and-blooms/bloom/v3 v3.7.1
	github.com/hashicorp/golang-lru/v2 v2.0.7
	github.com/klauspost/compress v1.20.3
	github.com/stretchr/testify v1.12.1
	github.com/temoto/robotstxt v1.1.2
	golang.org/x/net v0.62.0
	golang.org/x/text v0.43.0
)

require (
	github.com/bits-and-blooms/bitset v1.24.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
