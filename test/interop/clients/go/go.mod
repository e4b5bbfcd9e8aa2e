module interop

go 1.25.0

require github.com/apache/iggy/foreign/go v0.8.0

require (
	github.com/avast/retry-go/v5 v5.0.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.18.5 // indirect
)
