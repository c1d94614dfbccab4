"""The few shapes of the drawings, as SVG text. y grows downwards, as SVG has it; the drawings stand on y = 0."""

import math
import re
from collections.abc import Sequence
from html import escape
from typing import Literal, NamedTuple

Theme = Literal["light", "dark"]

# A page sets --lab-paper and so on; where it does not, the light theme's colour holds.
PALETTE: dict[str, dict[Theme, str]] = {
    "paper": {"light": "#ffffff", "dark": "#11151c"},
    "panel": {"light": "#f3f5f8", "dark": "#1b212b"},
    "ink": {"light": "#1c2430", "dark": "#e6eaf0"},
    "quiet": {"light": "#5b6675", "dark": "#98a3b3"},
    "identity": {"light": "#2463b4", "dark": "#6cabf7"},
    "norm": {"light": "#bd4a14", "dark": "#f0935a"},
    "norm-fill": {"light": "#fde6d8", "dark": "#4a2a17"},
    "scale": {"light": "#7b45b5", "dark": "#bb94ee"},
    "scale-fill": {"light": "#efe6f9", "dark": "#35264c"},
    "map": {"light": "#5b6675", "dark": "#98a3b3"},
    "map-fill": {"light": "#ffffff", "dark": "#11151c"},
}
FONT = "'Source Sans', 'Source Sans Pro', 'Helvetica Neue', Arial, sans-serif"
WIDTH = 360
SCALE = 2  # pixels for one of the drawing's units in a picture, as the charts have it in core/figures/images.py, which would load Altair
NORM, SMALL_NORM, PILL, NODE = (76, 22), (56, 20), (116, 18), (18, 18)
WIDEST = 18  # of a band that all of the signal takes
GAP = 4  # between a broken line and what breaks it


class Slot(NamedTuple):
    """A place in a drawing: its centre and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height / 2


def svg(top: float, title: str, description: str, drawing: Sequence[str]) -> str:
    """A drawing that reaches from `top` down to 0, with its name and its text."""
    size = f'width="{WIDTH}" height="{-top:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {top:g} {WIDTH} {-top:g}" {size} role="img" font-family="{FONT}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
        f'<rect y="{top:g}" {size} fill="{colour("paper")}"/>{"".join(drawing)}</svg>'
    )


def part(name: str, title: str, *shapes: str) -> str:
    """A named group, with its words for whoever points at it."""
    return f'<g data-part="{name}"><title>{escape(title)}</title>{"".join(shapes)}</g>'


def box(slot: Slot, label: str, kind: str, size: float = 13.5, jacobian: bool = False) -> str:
    """A norm, a scale or another map, by kind."""
    radius = {"norm": 5, "scale": 9, "map": 9}[kind]
    frame = (
        f'<rect class="{kind}" x="{slot.x - slot.width / 2:g}" y="{slot.top:g}" width="{slot.width:g}" height="{slot.height:g}" '
        f'rx="{min(radius, slot.height / 2):g}" fill="{colour(f"{kind}-fill")}" stroke="{colour(kind)}" stroke-width="1.5"/>'
    )
    return frame + text(slot.x, slot.y, label, size, jacobian=jacobian) if label else frame


def band(name: str, path: str, share: float, words: str, x: float, y: float, look: str, identity: bool) -> str:
    """Under a part's line, how much of the signal takes it: a band whose width is the share, and the share in words at the point."""
    shape = (
        f'<path d="{path}" fill="none" stroke="{colour("identity" if identity else "quiet")}" stroke-opacity="0.45" '
        f'stroke-width="{WIDEST * share if math.isfinite(share) else 0:.2f}" stroke-linejoin="round"/>'
    )
    label = text(x, y, words, 14, look=f'font-weight="600" {look}')
    return f'<g data-part="{name}" class="way">{shape}{label}</g>'


def node(slot: Slot, plus: bool) -> str:
    """A circled plus where signals are added, a dot where one goes two ways."""
    x, y, width, _ = slot
    if not plus:
        return f'<circle cx="{x:g}" cy="{y:g}" r="3.5" fill="{colour("quiet")}"/>'
    arm = width / 2 - 3.5
    cross = f'<path d="M{x - arm:g} {y:g}h{2 * arm:g}M{x:g} {y - arm:g}v{2 * arm:g}"/>'
    look = f'fill="{colour("paper")}" stroke="{colour("ink")}" stroke-width="1.8"'
    return f'<g {look}><circle cx="{x:g}" cy="{y:g}" r="{width / 2:g}"/>{cross}</g>'


def line(path: str, identity: bool = False, dashed: bool = False, bold: bool = True) -> str:
    look = f'class="line" stroke="{colour("quiet")}" stroke-width="2"'
    if identity:
        look = f'class="line identity" stroke="{colour("identity")}" stroke-width="{5 if bold else 2}"'
    elif dashed:
        look += ' stroke-dasharray="5 4"'
    return f'<path d="{path}" fill="none" {look}/>'


def lane(
    x: float,
    bottom: float,
    top: float,
    breaks: Sequence[Slot] = (),
    identity: bool = False,
    to: Literal["up", "down"] | None = None,
    bold: bool = True,
) -> str:
    """A stream's line: in one piece, whatever it passes, where it is an identity; else dashed, with a gap at each break."""
    head = ""
    if to == "up":
        head, top = arrow(x, top, to, identity), top + 8
    elif to == "down":
        head, bottom = arrow(x, bottom, to, identity), bottom - 8
    if identity:
        return line(f"M{x:g} {bottom:g}V{top:g}", identity=True, bold=bold) + head
    edges = [bottom]
    for slot in sorted(breaks, key=lambda slot: -slot.y):
        edges += [slot.bottom + GAP, slot.top - GAP]
    pieces = zip(edges[::2], [*edges[1::2], top], strict=True)
    return "".join(line(f"M{x:g} {start:g}V{stop:g}", dashed=True) for start, stop in pieces) + head


def arrow(x: float, y: float, to: Literal["up", "down", "left", "right"], identity: bool = False) -> str:
    """An arrow head with its tip at the point."""
    turn = {"up": 0, "right": 90, "down": 180, "left": 270}[to]
    shape = "M0 0l9 15h-18z" if identity else "M0 0l5 9h-10z"
    return f'<path d="{shape}" transform="translate({x:g} {y:g}) rotate({turn})" fill="{colour("identity" if identity else "quiet")}"/>'


def text(
    x: float, y: float, words: str, size: float, tone: str = "ink", look: str = "", jacobian: bool = False, turned: bool = False
) -> str:
    """Words centred at the point, unless the look has another anchor; a map's name becomes the index of its Jacobian."""
    content = escape(words)
    if jacobian:
        y -= 1.5  # the index hangs
        content = f'<tspan font-style="italic">J</tspan>{index(words, size)}'
    turn = f' transform="rotate(-90 {x:g} {y:g})"' if turned else ""
    anchor = "" if "text-anchor" in look else ' text-anchor="middle"'
    return f'<text x="{x:g}" y="{y + 0.35 * size:g}" font-size="{size:g}" fill="{colour(tone)}"{anchor}{turn} {look}>{content}</text>'


def signal(x: float, y: float, letter: str, at: str, forward: bool, tone: str = "ink") -> str:
    """A stream's value to the right of the point, or backward the gradient of the loss by it; `at` is its index."""
    size = 13
    name = escape(letter if forward else f"∂ℓ/∂{letter}")
    if at:
        name += index(at, size)
    return f'<text x="{x:g}" y="{y + 0.3 * size:g}" font-size="{size}" fill="{colour(tone)}" font-style="italic">{name}</text>'


def index(words: str, size: float) -> str:
    return f'<tspan font-size="{size - 2:g}" dx="1" dy="3">{escape(words)}</tspan>'


def path_label(x: float, y: float, identity: bool, look: str = "", turned: bool = False) -> str:
    """Whether a stream is an identity, in words beside it."""
    if identity:
        return text(x, y, "identity path", 12, "identity", f'font-weight="600" {look}', turned=turned)
    return text(x, y, "path interrupted", 12, "quiet", look, turned=turned)


def colour(name: str) -> str:
    return f"var(--lab-{name}, {PALETTE[name]['light']})"


def resolve_colours(drawing: str, theme: Theme) -> str:
    """The drawing in a theme's own colours, for a file."""
    return re.sub(r"var\(--lab-([a-z-]+), #\w+\)", lambda variable: PALETTE[variable[1]][theme], drawing)


def png(drawing: str, theme: Theme = "light") -> bytes:
    """The drawing as a picture, SCALE pixels for one of its units."""
    import vl_convert  # takes long to load

    return vl_convert.svg_to_png(resolve_colours(drawing, theme), scale=SCALE)
