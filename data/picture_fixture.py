#!/usr/bin/env python3
"""Writes picture_testdata/: small pictures of each kind, and what Pillow makes of them.
usage: picture_fixture.py       with Pillow from PyPI"""

import hashlib
import json
import math
import pathlib

from PIL import Image

OUT = pathlib.Path(__file__).parent / "picture_testdata"
WIDTH, HEIGHT = 61, 43
BOX, SIZES = (5, 3, 50, 40), [(45, 37), (32, 24), (100, 37), (45, 90), (1, 1), (7, 200)]


def colour(x, y):
    return tuple(int(127.5 + 127.5 * math.sin(x * a + y * b + c)) for a, b, c in ((0.31, 0.07, 0), (0.05, -0.43, 1), (0.9, 1.1, 2)))


def digest(image):
    return hashlib.sha256(image.tobytes()).hexdigest()


def main():
    OUT.mkdir(exist_ok=True)
    picture = Image.new("RGB", (WIDTH, HEIGHT))
    picture.putdata([colour(x, y) for y in range(HEIGHT) for x in range(WIDTH)])
    grey, alpha = picture.convert("L"), picture.convert("RGBA")
    alpha.putalpha(picture.getchannel("R"))
    turned = Image.Exif()
    turned[0x0112] = 6  # another orientation
    picture.save(OUT / "halved.jpg", quality=80, subsampling=2, exif=turned)
    picture.save(OUT / "progressive.jpg", quality=90, subsampling=0, progressive=True)
    grey.save(OUT / "grey.jpg", quality=70)
    picture.save(OUT / "rgb.png")
    alpha.save(OUT / "alpha.png")
    grey.save(OUT / "grey.png")
    picture.quantize(16).save(OUT / "palette.png", transparency=3)
    picture.convert("1").save(OUT / "bits.png")
    known = {}
    for path in sorted(OUT.glob("*.*g")):
        image = Image.open(path).convert("RGB")
        known[path.name] = [digest(image)] + [digest(image.crop(BOX).resize(size, Image.Resampling.BILINEAR)) for size in SIZES]
    lines = json.dumps({"box": BOX, "sizes": SIZES, "pictures": known}, indent=1)
    picture.convert("CMYK").save(OUT / "refused_cmyk.jpg")
    grey.convert("I;16").save(OUT / "refused_deep.png")
    (OUT / "known.json").write_text(lines + "\n", encoding="utf-8")


main()
