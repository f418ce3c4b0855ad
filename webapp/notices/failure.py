"""A failed try to send a notice."""


class Failure(Exception):
    """`words` are shown to the person.

    `refused`: the receiver or this server refuses this notice; only a few more tries are made.
    `unreachable`: other notices to the same receiver would now fail too.
    """

    def __init__(self, words: str, *, refused: bool = False, unreachable: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.refused = refused
        self.unreachable = unreachable
