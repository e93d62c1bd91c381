"""A picture of the outcome: for each row a bar for tow and one for the best peer."""

from xml.sax.saxutils import escape

from report import number

WIDTH, LEFT, BAR, GAP, STEP = 780, 270, 12, 3, 46
STYLE = """
  text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
  .small { font-size: 11px } .quiet { fill: #59636e } .tow { fill: #0a7d4f } .peer { fill: #9aa4af } .line { stroke: #d1d9e0 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .quiet { fill: #9198a1 } .tow { fill: #3fb27f } .peer { fill: #656c76 }
    .line { stroke: #3d444d }
  }
"""


def pair(result):
    """(tow's figure, the best peer's label, its figure), of the row's measure; `None` if there are not both."""
    own = [entry for entry in result.entries if entry.is_tow and entry.median(result.metric)]
    # The measure of a row of one connection is that of the entry which was told so.
    chosen = next((entry for entry in own if entry.label in ("tow -x1", "tow --checksum")), own[0] if own else None)
    label, value = result.best(result.metric)
    if chosen is None or label is None:
        return None
    return chosen.label, chosen.median(result.metric), label, value


def draw(results, machine):
    """An SVG that is legible on light and dark ground. Shorter bars are better."""
    rows = [(result, found) for result in results if (found := pair(result))]
    height = 64 + STEP * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="Each row compares tow with the best other program">',
        f"<style>{STYLE}</style>",
        '<text x="8" y="20" font-weight="600">tow and the best other program in each benchmark: shorter is better</text>',
        f'<line class="line" x1="{LEFT}" y1="34" x2="{LEFT}" y2="{height - 26}"/>',
    ]
    for index, (result, (own, mine, label, theirs)) in enumerate(rows):
        top = 40 + STEP * index
        most = max(mine, theirs)
        room = WIDTH - LEFT - 210
        name = {"cpu": "CPU", "wall": "time", "rss": "memory"}[result.metric]
        parts.append(f'<text x="8" y="{top + 11}">{escape(result.name)}</text>')
        parts.append(f'<text x="8" y="{top + 26}" class="quiet small">{escape(shortened(result.title))}</text>')
        for offset, kind, who, value in ((0, "tow", own, mine), (BAR + GAP, "peer", label, theirs)):
            length = max(2, room * value / most)
            shown = f"{number(value / 1024)} MiB" if result.metric == "rss" else f"{number(value)} s"
            parts.append(f'<rect class="{kind}" x="{LEFT}" y="{top + offset}" width="{length:.1f}" height="{BAR}" rx="2"/>')
            parts.append(f'<text x="{LEFT + length + 6:.1f}" y="{top + offset + 10}" class="small">'
                         f"{escape(shown)} {name} <tspan class=\"quiet\">{escape(shortened(who, 26))}</tspan></text>")
    foot = f"{machine['processor']}, {machine['cores']} cores, Linux {machine['kernel']}; client and server on one machine"
    parts.append(f'<text x="8" y="{height - 8}" class="quiet small">{escape(foot)}</text></svg>')
    return "\n".join(parts) + "\n"


def shortened(text, most=42):
    return text if len(text) <= most else text[:most - 1] + "…"
