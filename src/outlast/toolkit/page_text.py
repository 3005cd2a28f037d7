"""The text of an HTML page: what a reader would see, without scripts and styles."""

import re
from html.parser import HTMLParser

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


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.title: list[str] = []
        self._silent: list[str] = []
        self._is_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent.append(tag)
        self._is_title = tag == "title"
        if tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._silent:
            del self._silent[self._silent.index(tag) :]
        self._is_title = False
        if tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        (self.title if self._is_title else self.pieces).append(data)


def page_text(html: str) -> tuple[str | None, str]:
    """Its title, if it has one, and its text. Takes any text, however broken."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    text = _LINES.sub("\n", _GAPS.sub(" ", "".join(parser.pieces))).strip()
    return " ".join("".join(parser.title).split()) or None, text
