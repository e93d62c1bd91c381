"""Finds sentences that break the language rules in CONTRIBUTING.md, in comments, string literals and documents.

It knows patterns, not meaning. A finding is a place to look at; a text without findings can still be unclear.
"""

import os
import re

PATTERNS = [
    re.compile(pattern, re.I)
    for pattern in [
        r"\bwho(so)?ever\b|\bwhat(so)?ever is\b",
        r"\b(of|to|from|by|for) which\b",
        r"\b(goes|go|went|gone|going) on\b",
        r"\b(comes?|came|coming) back\b",
        r"\b(is|are|was|were|be) (told|said|led|at hand|given back|given up|taken back)\b",
        r"\btells? (of|that|what|which|how|whether|nothing)\b",
        r"\b(such a one|such one|the like)\b",
        r"\b(that|what|who|nothing|something|all) (is|was|are) (there|at|of|by|to be)\b",
        r"^\W*(What|Whether|Where|Who|Those|Nothing|That which)\b[^?]*$",
        r"\b(has|have|had) none\b|\bof none\b|\bis none\b",
        r"\bby (it|them)sel(f|ves)\b",
        r"\banew\b",
        r"\b(brings?|brought) (bytes|something|nothing|anything)\b",
        r"\b(lets?|letting) go of\b",
        r"\bas (long|many|much|often) as (it|they|one) (may|can|will)\b",
        r"\b(a|its|their) (word|saying) (of|that)\b",
        r"\bthe way of (a|an|the)\b",
        r"\b(more than|other than|less than|but for) (that|it|those)\b",
        r"\bin (one|two|three|its|their) turn\b|\bin its place\b",
        r"\b(be|is|are) (so|such)\b|\bif so be\b",
        r"\bunasked\b|\bunawares\b|\bheed(s|ed)?\b|\bdwell(s|ing)?\b|\bhitherto\b|\btherein\b|\bthereof\b|\bwhereof\b",
    ]
]
CODE = {".swift", ".c", ".h", ".js"}
PROSE = {".md", ".txt", ".1", ".yaml", ".html"}

COMMENT = re.compile(r"(?<![:\"])//+\s?(.*)")
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')


def texts(line, kind, in_literal):
    """The prose in one line, as (text, whether it is a string literal)."""
    if kind in PROSE:
        return [(line.strip("|#>*- \n"), False)]
    if in_literal:
        return [(line.strip(), True)]
    found = []
    comment = COMMENT.search(line)
    if comment:
        found.append((comment.group(1), False))
    elif re.match(r"\s*\*\s", line):
        found.append((line.strip(" *\n"), False))
    code = re.sub(r"//.*", "", line)
    return found + [(text, True) for text in STRING.findall(code) if text.count(" ") >= 2]


def findings(path, text):
    """Yields (line number, whether it is in a string literal, the text) for each suspicious line."""
    kind, in_literal = os.path.splitext(path)[1], False
    if kind not in CODE and kind not in PROSE:
        return
    for number, line in enumerate(text.split("\n"), 1):
        delimiters = line.count('"""') if kind == ".swift" else 0
        for prose, is_string in texts(line, kind, in_literal and not delimiters):
            if any(pattern.search(prose) for pattern in PATTERNS):
                yield number, is_string, prose.strip()
                break
        if delimiters % 2:
            in_literal = not in_literal
