// Package viewer shows an archive in a web browser, as of any time.
//
//	a, err := archive.Open(dir, archive.Options{})
//	http.Serve(listener, viewer.New(a, viewer.Options{}))
//
// A page is shown in a frame, as it was at a time, and so is all that it loads and all that it
// links to. Where a resource had not been found by then, the first one after it takes its place.
// Around the frame stand the versions before and after, the timeline and what changed.
//
// # What an archived page cannot do
//
// It is a stranger's, and it may be hostile. Its URLs are rewritten, but that is for convenience;
// what keeps it in are headers. Its Content-Security-Policy has it sandboxed, in an origin of its
// own, and loads nothing but what is below the replay path. By default nothing in it runs. With
// [Options.Scripts] its scripts do, and they reach neither the viewer nor the live web by any
// request; but they can make a browser look up names or try a WebRTC connection, for which there is
// no policy that browsers know.
//
// The replay path has a part that no other website knows, so that it cannot find out what is in the
// archive. Nor can it by a name that suddenly resolves to this computer: the Host field must name a
// loopback address or be in [Options.Hosts]. The viewer only reads: there is nothing but GET and
// HEAD, no cookie and no state.
//
// # What is changed in a page
//
// Pages and style sheets are served in UTF-8, all else as it was, without content coding. Forms do
// nothing. Without scripts, comments, scripts and event handlers are left out. Pages longer than
// [Options.MaxRewrite] are passed on as they are: then their links do not work, unless they are
// relative. Requests that scripts make up, other than relative ones, find nothing.
//
// # What it is not
//
// It does no log-in and no encryption: put a proxy with both in front of it, if it must leave the
// computer.
package viewer
