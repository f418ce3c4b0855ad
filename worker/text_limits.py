"""Maximum lengths of texts in the contract, in characters. Longer texts are cut off."""

MAX_LABEL = 200
MAX_TEXT = 2000
