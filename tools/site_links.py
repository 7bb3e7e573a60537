"""Checks every link inside a built site: site_links.py FOLDER. Those that lead elsewhere stay."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse


class Page(HTMLParser):
    """Links and anchors of one page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.loaded = [], set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag in ("img", "script", "iframe") and values.get("src"):
            self.loaded.append(values["src"])
        if tag == "link" and values.get("href") and values.get("rel") != "canonical":
            self.loaded.append(values["href"])


def dead_links(site):
    """Links that lead nowhere, and files that would be loaded from the internet, as lines."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    dead = []
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in page.links + page.loaded:
            address = urlparse(link)
            if address.scheme or address.netloc:
                if link in page.loaded and address.scheme != "data":
                    dead.append(f"{where}: loads {link}")
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            place = unquote(address.fragment)
            if not target.exists():
                dead.append(f"{where}: {link}")
            elif place and target in pages and place not in pages[target].anchors:
                dead.append(f"{where}: {link}: no such place on the page")
    return dead


if __name__ == "__main__":
    found = dead_links(Path(sys.argv[1]).resolve())
    print(*found, sep="\n")
    sys.exit(bool(found))
