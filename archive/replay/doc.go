// Package replay shows an archive in a web browser, as of any time.
//
//	web, err := archive.Open(dir, archive.Options{})
//	http.Serve(listener, replay.New(web, replay.Options{}))
//
// A page is shown in a frame, as it was at a time, and so is everything that it loads and links to.
// A resource that had not been fetched by then is replaced by its first version after it. Around
// the frame are the versions before and after, the timeline, and the differences between versions,
// which [Changes] gives to a program.
//
// # What an archived page cannot do
//
// Archived pages may be hostile. Their URLs are rewritten, and headers contain them. Their
// Content-Security-Policy puts them in a sandbox, in an origin of its own, and lets them load only
// what is below the replay path. By default no script runs. With [Options.Scripts] scripts run. They
// can send requests neither to the handler's own pages nor to the live web. They can read the
// archived pages of their own site as of the time shown, and of other sites only the scripts and
// fonts whose servers shared them. They can leak what they read: browsers have no policy against
// WebRTC and preconnect connections and lookups of names.
//
// Replay addresses are sealed, so that no website can probe the contents of the archive. A seal lets
// the pages of one site load one site as of one time: one that leaks opens nothing else. Against DNS
// rebinding, the Host field must be a loopback address or in [Options.Hosts]. The handler answers
// only GET and HEAD, and has no cookies and no state.
//
// # What is changed in a page
//
// Pages and style sheets are served in UTF-8, everything else without content coding, and what is loaded as an image
// or a script with a type that browsers take. Forms do nothing; a link in a frameset opens its page alone. Without
// scripts, comments, scripts and event handlers are removed. Elements of other SVG files are missing, and style sheets
// of a wrong type in pages without DOCTYPE: browsers keep them from an origin of its own. A frame shows pages of more
// than 8 MiB and XML as their source, SVG as an image, and no type that browsers save. Addresses built by scripts find
// only their own site. If a body cannot be read to its end, the response breaks off; a page or a style sheet ends
// there. URLs of more than 64 KiB, and style attributes and SVG styles of more than 1 MiB, are dropped.
//
// All requests together take up to 96 MiB to rewrite and compare pages, a sixth of them for small pages, besides
// what decoding takes. Further ones wait. One that is not read within 30 seconds is cut off; without a
// WriteTimeout, so is a file of which nothing is read for 10 minutes. A timeline takes a kilobyte a version.
//
// It has no login and no encryption. To serve other computers, put it behind a proxy with both that keeps Host.
package replay
