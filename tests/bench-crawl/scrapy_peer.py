"""Scrapy on the benchmark's web: the same paths of the same sites, obeying robots.txt, each site on its own address."""
import sys
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.resolver import CachingThreadedResolver
from twisted.internet import defer

folder, mode, concurrency = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
ADDRESSES = dict(reversed(line.split()) for line in (folder / "hosts").read_text().splitlines())
PATHS = [path for path in (folder / "paths.txt").read_text().split() if path != "/robots.txt"]


class Hosts(CachingThreadedResolver):
    """Resolves names from the hosts file, as agentdex does."""

    def getHostByName(self, name, timeout=None):
        socket = ADDRESSES.get(name)
        return defer.succeed(socket.rsplit(":", 1)[0]) if socket else super().getHostByName(name, timeout)


class Peer(scrapy.Spider):
    name = "peer"
    handle_httpstatus_all = True

    async def start(self):
        for name, socket in ADDRESSES.items():
            for path in PATHS:
                yield scrapy.Request(f"https://{name}:{socket.rsplit(':', 1)[1]}{path}", callback=self.parse, errback=self.parse)

    def parse(self, response):
        return None


process = CrawlerProcess({
    "DNS_RESOLVER": Hosts,
    "ROBOTSTXT_OBEY": True,
    "USER_AGENT": "peer/1.0 (+https://crawler.example/)",
    "CONCURRENT_REQUESTS": concurrency,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "DOWNLOAD_DELAY": 1 if mode == "polite" else 0,
    "RANDOMIZE_DOWNLOAD_DELAY": False,
    "DOWNLOAD_TIMEOUT": 20,
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "COOKIES_ENABLED": False,
    "LOG_LEVEL": "ERROR",
    "TELNETCONSOLE_ENABLED": False,
})
process.crawl(Peer)
process.start()
