package scan

// Worker is what tests wrap.
type Worker = worker

// WorkOf is for tests that have workers of their own.
func WorkOf(start func(Options) (Worker, error)) Work { return Work{start} }

// Start starts a worker.
func (w Work) Start(o Options) (Worker, error) { return w.start(o) }
