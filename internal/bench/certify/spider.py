"""Follows every link, as scrapy's CrawlSpider does."""

from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class Spider(CrawlSpider):
    name = "certify"
    rules = (Rule(LinkExtractor(), follow=True),)

    def __init__(self, seed, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.start_urls = [seed]
