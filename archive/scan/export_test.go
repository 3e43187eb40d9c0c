package scan

// Worker is exported for tests that wrap it.
type Worker = worker

// WorkOf returns a Work with the workers of a test.
func WorkOf(start func(Options) (Worker, error)) Work { return Work{start} }

// Start starts a worker.
func (w Work) Start(o Options) (Worker, error) { return w.start(o) }
