"""The runtime's own tags in text from elsewhere: made harmless, so that nobody else can speak in its voice."""

import re

OWN_TAGS = ("background_result", "attached_context", "attached_files", "runtime_notice")

# Never two runs of blanks side by side: the ways to share them out would be tried, one after the other.
_OWN_TAG = re.compile(r"<(?=\s*+(?:/\s*+)?(?:" + "|".join(OWN_TAGS) + r")\b)", re.I)


def escape(text: str) -> str:
    """All other markup stays as it was written."""
    return _OWN_TAG.sub("&lt;", text)
