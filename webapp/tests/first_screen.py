"""The words on the first screen of a page: what a person sees without scrolling.

A word is text between spaces with a letter in it that is visible inside the window, in tables and charts as well.
Numbers (`29.3k`, `×5.94`) are no words. Not counted: the six entries of the navigation, and names of hosts, drives,
plans and runs, which people choose.
"""

import re
from collections.abc import Iterable

from playwright.sync_api import Page

MOST = 150  # on a page
MOST_ON_OVERVIEW = 120
MOST_ON_HOST = 200  # of eight targets
MOST_ON_PLANS = 250  # of the built-in plans

# Text of the window in the order of the document. A line that is scrolled away or clipped has no place in the window.
_VISIBLE_TEXT = r"""() => {
  const inside = (a, b) => a.bottom > b.top && a.top < b.bottom && a.right > b.left && a.left < b.right;
  const clipped = (box, element) => {
    for (let one = element; one && one !== document.body; one = one.parentElement) {
      const style = getComputedStyle(one);
      if (style.overflow === "visible" && style.clip === "auto" && style.clipPath === "none") continue;
      const frame = one.getBoundingClientRect();
      if (frame.width < 2 || frame.height < 2 || !inside(box, frame)) return true;
    }
    return false;
  };
  const screen = { top: 0, left: 0, bottom: innerHeight, right: innerWidth };
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    if (parent.closest("script, style, noscript, option, #menu")) continue;
    if (!parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    for (const match of node.data.matchAll(/\S+/g)) {
      const range = document.createRange();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      const box = range.getBoundingClientRect();
      if (box.width && inside(box, screen) && !clipped(box, parent)) texts.push(match[0]);
    }
  }
  return texts.join(" ");
}"""
_WORD = re.compile(r"^(?![×÷±−+<>≈~(\[/]*\d).*[^\W\d_]")


def words_on_first_screen(page: Page, names: Iterable[str]) -> list[str]:
    """In their order. `names` are not counted."""
    text: str = page.evaluate(_VISIBLE_TEXT)
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(' '.join(name.split()))}(?!\w)", " ", text)
    return [word for word in text.split() if _WORD.match(word)]
