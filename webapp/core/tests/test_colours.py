"""Colours of series: the same everywhere, and far enough from each other and from both backgrounds."""

import re
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings
from numpy.typing import NDArray

from webapp.pictures.elements import COLOURS, HEX, colours_of

Matrix = NDArray[np.float64]
SOURCE = Path(settings.BASE_DIR) / "frontend/src"
TOKENS = (SOURCE / "styles/tokens.css").read_text()
THEMES = dict(zip(("light", "dark"), TOKENS.split('[data-bs-theme="dark"] {', 1), strict=True))
# OKLab: B. Ottosson, A perceptual color space for image processing, 2020. Linear sRGB to cone responses, and to Lab.
CONES = np.array(
    [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
     [0.0883024619, 0.2817188376, 0.6299787005]]
)  # fmt: skip
LAB = np.array(
    [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
     [0.0259040371, 0.7827717662, -0.8086757660]]
)  # fmt: skip
# How colours look: G. M. Machado, M. M. Oliveira, L. A. F. Fernandes: A physiologically-based model for simulation of
# color vision deficiency, IEEE Transactions on Visualization and Computer Graphics 15, 2009, at severity 1.
SIGHT = {
    "normal": np.eye(3),
    "protanope": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranope": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanope": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
LEAST_DISTANCE = 0.085


def products(theme: str) -> list[str]:
    return re.findall(r"--ss-product-\d: (#[0-9a-f]{6});", THEMES[theme])


def card(theme: str) -> str:
    colour = re.search(r"--ss-card: (#[0-9a-f]{6});", THEMES[theme])
    assert colour
    return colour[1]


def linear(colour: str) -> Matrix:
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def oklab(colour: str, sight: Matrix) -> Matrix:
    seen = np.clip(sight @ linear(colour), 0, None)
    lab: Matrix = LAB @ np.cbrt(CONES @ seen)
    return lab


def luminance(colour: str) -> float:
    return float(np.array([0.2126, 0.7152, 0.0722]) @ linear(colour))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("sight", SIGHT)
def test_no_two_series_have_nearly_one_colour(sight: str, theme: str) -> None:
    distances = {
        (one, other): float(np.linalg.norm(oklab(one, SIGHT[sight]) - oklab(other, SIGHT[sight])))
        for one, other in combinations(products(theme), 2)
    }
    assert {pair: far for pair, far in distances.items() if far < LEAST_DISTANCE} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_every_colour_stands_out_on_cards(theme: str) -> None:
    for colour in products(theme):
        dark, light = sorted((luminance(colour), luminance(card(theme))))
        assert (light + 0.05) / (dark + 0.05) >= 3, colour


def test_eight_series_have_eight_colours() -> None:
    names = [f"{host}/{engine}" for host, engine in product(("a", "b", "c", "d"), ("io_uring", "psync"))]
    for count in range(1, COLOURS + 1):
        assert len(set(colours_of(names[:count]).values())) == count


def test_scripts_and_styles_have_the_colours_of_the_server() -> None:
    assert tuple(products("light")) == HEX
    scripts = (SOURCE / "lib/colours.ts").read_text()
    for theme in THEMES:
        colours = re.search(rf"const {theme.upper()} = \[(.*?)\]", scripts)
        assert colours
        assert re.findall(r"#[0-9a-f]{6}", colours[1]) == products(theme)
