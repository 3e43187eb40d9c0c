package main

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-resty/resty/v2"
	"github.com/gocolly/colly/v2"
	"github.com/spinneret-go/spinneret/fetch"
	"github.com/spinneret-go/spinneret/fetch/page"
	"github.com/valyala/fasthttp"
)

// withLinks gets a page and finds its links, like a crawler.
func withLinks(addr string, conns, size int) (getter, error) {
	return getterWith(addr, conns, func(resp *fetch.Response) error {
		links := 0
		for range page.Links(resp.Body, resp.URL, resp.Header.Get("Content-Type")) {
			links++
		}
		return whole(links, linksOf(size))
	})
}

// collector returns a colly collector as in colly's documentation, on a transport that keeps as
// many connections as the other clients. The workers share it.
func collector(conns int) (*colly.Collector, *http.Transport) {
	transport := &http.Transport{MaxIdleConnsPerHost: conns, MaxIdleConns: conns}
	c := colly.NewCollector(colly.AllowURLRevisit())
	c.WithTransport(transport)
	return c, transport
}

// The keys under which callbacks store their counts of a page.
const bytesKey, linksKey = "bytes", "links"

func bareColly(addr string, conns, size int) (getter, error) {
	c, transport := collector(conns)
	c.OnResponse(func(r *colly.Response) { r.Ctx.Put(bytesKey, len(r.Body)) })
	return visits(c, transport, addr, bytesKey, size), nil
}

func collyWithLinks(addr string, conns, size int) (getter, error) {
	c, transport := collector(conns)
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		links, _ := e.Request.Ctx.GetAny(linksKey).(int)
		if e.Request.AbsoluteURL(e.Attr("href")) != "" {
			links++
		}
		e.Request.Ctx.Put(linksKey, links)
	})
	return visits(c, transport, addr, linksKey, linksOf(size)), nil
}

// visits lets the workers visit the page and checks the count that a callback stored under the key.
func visits(
	c *colly.Collector, transport *http.Transport, addr, key string, want int,
) getter {
	url := "http://" + addr + "/page.html"
	get := func() error {
		ctx := colly.NewContext()
		if err := c.Request(http.MethodGet, url, nil, ctx, nil); err != nil {
			return err
		}
		got, _ := ctx.GetAny(key).(int)
		return whole(got, want)
	}
	return getter{get, transport.CloseIdleConnections}
}

func restyClient(addr string, conns, size int) (getter, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: conns, MaxIdleConns: conns}
	client := resty.New().SetTransport(transport)
	url := "http://" + addr + "/page.html"
	get := func() error {
		resp, err := client.R().Get(url)
		if err != nil {
			return err
		}
		return whole(len(resp.Body()), size)
	}
	return getter{get, transport.CloseIdleConnections}, nil
}

// fastHTTP is a client that does not use net/http: only HTTP/1.1, no limits, no decoding.
func fastHTTP(addr string, conns, size int) (getter, error) {
	client := &fasthttp.HostClient{
		Addr: addr, MaxConns: conns,
		Dial: func(addr string) (net.Conn, error) { return net.DialTimeout("tcp", addr, time.Second) },
	}
	url := "http://" + addr + "/page.html"
	get := func() error {
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(req)
		defer fasthttp.ReleaseResponse(resp)
		req.SetRequestURI(url)
		if err := client.Do(req, resp); err != nil {
			return err
		}
		if code := resp.StatusCode(); code != http.StatusOK {
			return fmt.Errorf("status %d", code)
		}
		return whole(len(resp.Body()), size)
	}
	return getter{get, client.CloseIdleConnections}, nil
}
