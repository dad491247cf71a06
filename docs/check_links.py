"""Check every link of the built site that stays inside it: pages, anchors, pictures, files.

`python docs/check_links.py build/html` prints those that lead nowhere, and fails if there are any.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what a tag names and where it points."""
        for key, value in attrs:
            if key in {"id", "name"} and value:
                self.anchors.add(value)
            if key in {"href", "src"} and value and tag != "base":
                self.links.add(value)


def broken_links(site: Path) -> list[str]:
    """Return the links that lead nowhere, as `page: link`."""
    pages = {
        path.resolve(): Page(path.read_text("utf-8"))
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    }
    return sorted(
        f"{path.relative_to(site.resolve())}: {link}"
        for path, page in pages.items()
        for link in page.links
        if not leads_somewhere(link, path, pages)
    )


def leads_somewhere(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    """Tell whether a link leaves the site, or its target is there."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if target not in pages:
        return target.is_file()
    return unquote(parts.fragment) in pages[target].anchors


def main(folder: str) -> None:
    """Print the broken links of a site."""
    site = Path(folder)
    n_pages = sum(1 for _ in site.rglob("*.html"))
    if not n_pages:
        sys.exit(f"No page in {folder}: build the site first, by `make docs`.")
    broken = broken_links(site)
    print(*broken, sep="\n", end="\n" if broken else "")
    print(f"{n_pages} pages, {len(broken)} broken links")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main(sys.argv[1])
