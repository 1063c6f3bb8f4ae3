"""Small copies of the committed pictures."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

#: About their width, twice that of a card, for screens of high density; and their colours.
WIDTH, COLOURS = 560, 64


def thumbnail(picture: Path, path: Path) -> tuple[int, int]:
    """Write a small copy of a PNG file, unless the one that is there is of this picture.

    Returns:
        Its width and height.
    """
    if not path.is_file() or path.stat().st_mtime < picture.stat().st_mtime:
        path.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(picture) as image:
            small = image.reduce(max(1, round(image.width / WIDTH)))
        on_white = Image.new("RGBA", small.size, "white")
        on_white.alpha_composite(small.convert("RGBA"))
        on_white.convert("RGB").quantize(COLOURS, Image.Quantize.FASTOCTREE).save(path)
    with Image.open(path) as image:
        return image.size
