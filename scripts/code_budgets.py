"""The budgets of code lines, one for each module, and the counts that they are to lower.

A code line is a line of Swift that is neither empty nor a comment. A budget rises only in a commit whose subject names
the feature that needs the lines: it begins with "Add".
"""

import json
import re
import subprocess

FILE = "scripts/code-budgets.json"
STATE = "Sources/TowlineCore/Transfer/"
PARTS = "Evidence|Sources|Patience|Work"
BOOLEAN = re.compile(r"^    (?:\w+(?:\(set\))? )*var \w+(?:: Bool| = (?:true|false))(?: = (?:true|false))?$")
STORED = re.compile(r"^    (?:\w+(?:\(set\))? )*var \w+[^{]*$")
SIBLING = re.compile(rf"inout Transfer(?:{PARTS})\b")
TAKING = re.compile(r"\bfunc take\w*\(")


def is_comment(line):
    return line.lstrip().startswith("//")


def count(sources):
    """The code lines by module; `sources` has the text of each file by its path."""
    counts = {}
    for path, text in sources.items():
        module = path.split("/")[1]
        lines = sum(1 for line in text.split("\n") if line.strip() and not is_comment(line))
        counts[module] = counts.get(module, 0) + lines
    return counts


def check(counts, budgets):
    """The modules that have more code lines than their budgets allow."""
    return [
        f"Sources/{module}: {lines} code lines, the budget is {budgets.get(module, 0)}: delete code, or raise the"
        " budget in a commit whose subject begins with 'Add'"
        for module, lines in sorted(counts.items()) if lines > budgets.get(module, 0)
    ]


def check_rise(budgets, previous, subject):
    """The budgets that a commit with this subject raised without naming a feature."""
    if subject.startswith("Add "):
        return []
    return [
        f"{FILE}: '{subject}' raised the budget of {module} from {previous[module]} to {lines}: a subject that names a"
        " feature begins with 'Add'"
        for module, lines in sorted(budgets.items()) if lines > previous.get(module, lines)
    ]


def check_last_rise(root):
    """The breaches of the last commit that changed the budgets; none if git does not know it."""

    def git(*arguments):
        run = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
        return run.stdout.strip() if run.returncode == 0 else ""

    commits = git("log", "-2", "--format=%H %s", "--", FILE).split("\n")
    if len(commits) < 2:
        return []
    (last, subject), (before, _) = (commit.split(" ", 1) for commit in commits)
    now, then = git("show", f"{last}:{FILE}"), git("show", f"{before}:{FILE}")
    return check_rise(json.loads(now), json.loads(then), subject) if now and then else []


def write(root, counts, budgets):
    """Lowers the budgets to the counts. A module without a budget gets one."""
    lowered = {module: min(lines, budgets.get(module, lines)) for module, lines in counts.items()}
    rows = [f"  {json.dumps(module)}: {lines}" for module, lines in sorted(lowered.items())]
    (root / FILE).write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def report(sources):
    """The counts of `scripts/house --counts`, one for each line."""
    state = [text for path, text in sources.items() if path.startswith(STATE)]

    def lines(pattern, texts):
        return sum(1 for text in texts for line in text.split("\n") if not is_comment(line) and pattern.search(line))

    everything = list(sources.values())
    yield "code lines in Sources", sum(count(sources).values())
    yield "comment lines in Sources", sum(is_comment(line) for text in everything for line in text.split("\n"))
    yield "stored variables in Core/Transfer", lines(STORED, state)
    yield "of these, Booleans", lines(BOOLEAN, state)
    yield "lines with an inout parameter of a sibling in Core/Transfer", lines(SIBLING, state)
    yield "functions named take", lines(TAKING, everything)


def self_test():
    """The rules that did not find what they should; each is shown a breach and its lawful neighbour."""
    text = "// Why.\nlet a = 1\n\n    /// What.\n"
    found = [
        count({"Sources/A/a.swift": text, "Sources/A/b.swift": text}) == {"A": 2},
        len(check({"A": 2}, {"A": 1})) == 1,
        len(check({"A": 2}, {})) == 1,
        check({"A": 2}, {"A": 2}) == [],
        len(check_rise({"A": 2}, {"A": 1}, "Fix a fault")) == 1,
        check_rise({"A": 2}, {"A": 1}, "Add a feature") == [],
        check_rise({"A": 1, "B": 1}, {"A": 1}, "Fix a fault") == [],
        dict(report({STATE + "a.swift": "    var isA = true\n    var b: Int { 1 }\n    var c = 2\n"}))[
            "of these, Booleans"] == 1,
    ]
    return [number for number, good in enumerate(found) if not good]
