module github.com/spinneret-go/spinneret

go 1.25.0

require (
	github.com/andybalholm/brotli v1.2.6
	github.com/bits-and-blooms/bloom/v3 v3.7.1
	github.com/hashicorp/golang-lru/v2 v2.0.7
	github.com/klauspost/compress v1.20.4
	github.com/stretchr/testify v1.10.0
	github.com/temoto/robotstxt v1.1.2
	golang.org/x/net v0.58.0
	golang.org/x/text v0.41.0
)

require (
	github.com/bits-and-blooms/bitset v1.24.2 // indirect
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
