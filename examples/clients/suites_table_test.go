package clients

// suites are the clients whose tests TestSuites runs.
var suites = []suite{
	{
		module: "github.com/gocolly/colly/v2", clause: "colly",
		differ: []difference{
			{"TestIgnoreRobotsWhenDisallowed", "robotshttp all",
				"The test requests a disallowed page, and robotshttp is there to refuse it."},
			{"TestNoAcceptHeader", "fetch all",
				"fetch adds Accept to a request that has none, and net/http does not."},
		},
	},
	{module: "github.com/gocolly/colly/v2", dir: "queue", clause: "queue", noRules: true},
	{module: "github.com/mmcdole/gofeed", clause: "gofeed_test"},
	{
		module: "github.com/hashicorp/go-retryablehttp", clause: "retryablehttp", noRules: true,
		alone: "^TestClient_Do$", // :28934
		differ: []difference{
			{"TestClient_Do", "schedulerhttp", nilAddress},
			{"TestClient_RequestLogHook/RequestLogHook_successfully_called_with_default_Logger",
				"schedulerhttp", nilAddress},
			{"TestClient_RequestLogHook/RequestLogHook_successfully_called_with_nil_Logger",
				"schedulerhttp", nilAddress},
			{"TestClient_RequestLogHook/RequestLogHook_successfully_called_with_nil_typed_LeveledLogger",
				"schedulerhttp", nilAddress},
			{"TestClient_RequestLogHook/RequestLogHook_successfully_called_with_nil_typed_Logger",
				"schedulerhttp", nilAddress},
			{"TestClient_DefaultRetryPolicy_TLS", "fetch all",
				"The client looks for a *tls.CertificateVerificationError directly below the url.Error, " +
					"where fetch has its own error, so it retries."},
			{"TestClient_DefaultRetryPolicy_invalidscheme", "fetch all",
				"The client looks for the words of net/http, which fetch does not use, so it retries."},
			{"TestRoundTripper_TransportFailureErrorHandling", "fetch all",
				"The test wants exactly the *net.OpError of net/http, and fetch returns a *fetch.Error."},
		},
	},
	{
		module: "github.com/go-resty/resty/v2", clause: "resty", noRules: true,
		differ: []difference{
			{"TestResponseBodyLimit/read_error", "fetch all",
				"The test wants the text of gzip.ErrHeader, which fetch replaces by CutCoding."},
			{"TestTraceInfoOnTimeout", "fetch all", lookedUp},
			{"TestTraceInfoOnTimeoutWithSetTimeout/timeout_with_very_short_timeout", "fetch all", lookedUp},
			{"TestTraceInfoOnTimeoutWithSetTimeout/HTTPS_request_with_TLS_handshake", "fetch all",
				"fetch does the handshake itself and does not trace it."},
		},
	},
}

// Reasons that several differences have in common.
const (
	nilAddress = "httputil.DumpRequestOut writes to a net.Conn whose RemoteAddr is nil, for which " +
		"schedulerhttp panics."
	lookedUp = "In a trace over fetch, the connection to the name server looks like one to the site."
)
