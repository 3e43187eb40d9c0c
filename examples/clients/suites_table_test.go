package clients

// suites are the clients whose tests TestSuites runs.
var suites = []suite{
	{
		module: "github.com/gocolly/colly/v2", clause: "colly",
		differ: []difference{
			{"TestIgnoreRobotsWhenDisallowed", "robotshttp all",
				"The test requests a disallowed page, and robotshttp is there to refuse it."},
		},
	},
	{module: "github.com/gocolly/colly/v2", dir: "queue", clause: "queue", noRules: true},
	{
		module: "github.com/mmcdole/gofeed", clause: "gofeed_test",
		clock: "^TestParseURLContextTimeout$", // 1 s
	},
	{
		module: "github.com/hashicorp/go-retryablehttp", clause: "retryablehttp", noRules: true,
		alone: "^TestClient_Do$",                   // :28934
		clock: "^TestClient_(Do|ResponseLogHook)$", // 1 s, 150 ms
		differ: []difference{
			{"TestRoundTripper_TransportFailureErrorHandling", "fetch all",
				"The test wants exactly the *net.OpError of net/http, and fetch returns a *fetch.Error."},
		},
	},
	{
		module: "github.com/go-resty/resty/v2", clause: "resty", noRules: true,
		// 5 or 10 ms, 1 s, 1 s
		clock: "^TestClientRetryWait(|Callback(|TooShort|TooLong|SwitchToDefault))$|" +
			"^TestClientTimeoutWithinThreshold$|^TestTraceInfoWithInvalidRequest$",
	},
}
