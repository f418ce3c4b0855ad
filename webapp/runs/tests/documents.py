"""Documents of plans."""

import msgspec

from webapp.plans.document import Part, PlanDocument
from webapp.tests.factories.plans import DOCUMENT


def a_document(**factors: str) -> PlanDocument:
    return msgspec.structs.replace(DOCUMENT, parts=(Part(name="p", factors={"pattern": "randread", **factors}),))
