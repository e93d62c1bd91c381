"""The sizes of the types that hold changing state, over all their files.

A type that many fields and functions share cannot be understood in parts. Types that only hold values are exempt: they
have no mutating function and, if they are classes, no stored variable, mutex or atomic.
"""

import collections
import re

PROPERTIES = 15
LINES = 600

# Records with a few functions that change them, each independent of the others.
RECORDS = {"DownloadRequest", "ResponseFacts", "ResponseQuestion", "DownloadSettings"}

MODIFIER = (
    r"(?:@\w+(?:\([^)]*\))?|(?:public|package|internal|private|fileprivate)(?:\(set\))?|final|indirect|weak|lazy"
    r"|unowned(?:\(\w+\))?|nonisolated(?:\(\w+\))?|mutating|override)\s+"
)
TYPE = re.compile(rf"^\s*(?:{MODIFIER})*(struct|class|actor|enum|extension)\s+(\w[\w.]*)[^}}]*\{{$")
STORED = re.compile(rf"^\s*(?:{MODIFIER})*(let|var)\s(.*)$")
COMPUTED = re.compile(r"^[^={]*\{")
# A constant whose value changes.
GUARDED = re.compile(r"\b(Mutex|Atomic)\b")
MUTATING = re.compile(rf"^\s*(?:{MODIFIER})*func\b")


class Size:
    """The counts of one type."""

    def __init__(self):
        self.kind, self.path = "extension", ""
        self.lets, self.vars, self.lines, self.mutates = 0, 0, 0, False

    def changes(self):
        """True if the type holds changing state."""
        return self.vars > 0 if self.kind in ("class", "actor") else self.mutates


def measure(sources):
    """The sizes by module and name; `sources` has the lines, without comments and strings, by path."""
    sizes = collections.defaultdict(Size)
    for path, lines in sources.items():
        module, stack = path.split("/")[1], []
        for line in lines:
            opened = TYPE.match(line)
            closes = line.startswith(" " * stack[-1][1] + "}") if stack else False
            if closes and len(line) - len(line.lstrip()) == stack[-1][1]:
                sizes[stack.pop()[0]].lines += 1
                continue
            if opened:
                kind, name = opened.groups()
                if kind != "extension" and stack:
                    name = stack[-1][0][1] + "." + name
                key = (module, name)
                if kind != "extension":
                    sizes[key].kind, sizes[key].path = kind, path
                sizes[key].lines += 1
                stack.append((key, len(line) - len(line.lstrip())))
                continue
            if not stack:
                continue
            size = sizes[stack[-1][0]]
            size.lines += 1
            if len(line) - len(line.lstrip()) != stack[-1][1] + 4:
                continue
            stored = STORED.match(line)
            if stored and "static " not in line.split("=")[0] and not COMPUTED.match(stored.group(2)):
                if stored.group(1) == "let" and not GUARDED.search(stored.group(2)):
                    size.lets += 1
                else:
                    size.vars += 1
            size.mutates = size.mutates or bool(MUTATING.match(line)) and "mutating " in line
    return sizes


def check(sources):
    """The breaches: types with changing state and too many properties or lines."""
    breaches = []
    for (module, name), size in sorted(measure(sources).items()):
        if size.kind == "extension" or not size.changes() or name in RECORDS:
            continue
        if size.lets + size.vars > PROPERTIES:
            breaches.append(
                f"{size.path}: {name} has {size.lets + size.vars} stored properties, the budget is {PROPERTIES}")
        if size.lines > LINES:
            breaches.append(f"{size.path}: {name} has {size.lines} lines in {module}, the budget is {LINES}")
    return breaches
