"""The text of an HTML page: what a reader would see, without scripts and styles.

Read in one pass, in a time that grows with its length alone, whatever it holds: pages are written by strangers, and a
parser that looks again and again for what never comes would hold up the whole process.
"""

import re
from collections import Counter
from collections.abc import Iterator
from html import unescape

_RAW = frozenset({"script", "style", "textarea", "title", "xmp", "noframes"})
"""No tags are within them: they end at their own end tag."""
_SILENT = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas"})
_BLOCKS = frozenset(
    [
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "br",
            "caption",
            "dd",
            "div",
            "dl",
            "dt",
            "fieldset",
            "figcaption",
        ),
        *("figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol"),
        *("option", "p", "pre", "section", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "title"),
    ]
)
_GAPS = re.compile(r"[ \t\r\f\v\xa0]+")
_LINES = re.compile(r" ?\n[ \n]*")
_NAME = re.compile(r"/?[a-zA-Z][^\s/>]{0,50}")
_IN_A_TAG = re.compile(r">|=\s{0,20}[\"']")


class _Page:
    """A text with a place in it. What was looked for in vain is not looked for again: it is not there later either."""

    def __init__(self, html: str) -> None:
        self.html = html
        self.at = 0
        self._lower = html.lower()
        self._missing: set[str] = set()
        if len(self._lower) != len(html):  # a few letters have another length in lower case
            self._lower = html

    def past(self, mark: str, begin: int) -> int | None:
        """Where the next `mark`, written small, ends; None if there is none any more."""
        found = -1 if mark in self._missing else self._lower.find(mark, begin)
        if found < 0:
            self._missing.add(mark)
            return None
        return found + len(mark)

    def past_tag(self, begin: int) -> int | None:
        """Where a tag ends; a `>` in the quotes of an attribute does not end it."""
        at = begin
        while ">" not in self._missing and (found := _IN_A_TAG.search(self.html, at)) is not None:
            if found[0] == ">":
                return found.end()
            at = self.past(found[0][-1], found.end()) or found.end()
        self._missing.add(">")
        return None


def _pieces(page: _Page) -> Iterator[tuple[str, str]]:
    """Texts as `("", text)`; tags as their names in lower case, with `/` before that of an end tag."""
    html, size = page.html, len(page.html)
    while page.at < size:
        mark = html.find("<", page.at)
        if mark < 0:
            yield "", unescape(html[page.at :])
            return
        if mark > page.at:
            yield "", unescape(html[page.at : mark])
        page.at = mark
        if html.startswith("<!--", mark):
            page.at = page.past("-->", mark + 4) or size
        elif html.startswith(("<!", "<?"), mark):
            page.at = page.past(">", mark) or size
        elif (name := _NAME.match(html, mark + 1)) is None:
            yield "", "<"
            page.at = mark + 1
        else:
            yield from _tag(page, name[0].lower(), name.end())


def _tag(page: _Page, name: str, begin: int) -> Iterator[tuple[str, str]]:
    size = len(page.html)
    end = page.past_tag(begin)
    page.at = size if end is None else end
    yield name, ""
    if page.html.endswith("/>", begin, page.at):
        yield f"/{name}", ""
    elif name in _RAW and end is not None:
        until = page.past(f"</{name}", end)
        text = page.html[end : size if until is None else until - len(name) - 2]
        yield "", text if name in _SILENT else unescape(text)
        page.at = size if until is None else until - len(name) - 2


class _Silent:
    """The elements that are open and show no text; the end of an outer one ends those within."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self._counts = Counter[str]()

    def take(self, name: str, *, is_end: bool) -> None:
        if not is_end:
            self.open.append(name)
            self._counts[name] += 1
        while is_end and self._counts[name]:
            last = self.open.pop()
            self._counts[last] -= 1
            is_end = last != name


def page_text(html: str) -> tuple[str | None, str]:
    """Its title, if it has one, and its text. Takes any text, however broken."""
    said: list[str] = []
    title: list[str] = []
    silent = _Silent()
    is_title = False
    for name, text in _pieces(_Page(html)):
        plain = name.removeprefix("/")
        if not name:
            if not silent.open:
                (title if is_title else said).append(text)
            continue
        if plain in _SILENT:
            silent.take(plain, is_end=plain != name)
        is_title = name == "title"
        if plain in _BLOCKS:
            said.append("\n")
    text = _LINES.sub("\n", _GAPS.sub(" ", "".join(said))).strip()
    return " ".join("".join(title).split()) or None, text
