"""A try to send a notice that failed."""


class Failure(Exception):
    """`words` are shown to the person.

    `refused`: the receiver, or this server, refuses this notice; more than a few tries are of no use.
    `unreachable`: other notices to the same receiver would fail in the same way now.
    """

    def __init__(self, words: str, *, refused: bool = False, unreachable: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.refused = refused
        self.unreachable = unreachable
