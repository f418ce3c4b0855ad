"""The preview of a plan on chosen targets: one page of its trials with their jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from django.core.paginator import Page, Paginator

from webapp.analysis.detectable import Detectable, detectable
from webapp.hosts.models import Target
from webapp.hosts.selectors import group_name
from webapp.plans.document import PlanDocument
from webapp.plans.estimate import Expected, written_in_total
from webapp.plans.expand import PlannedTrial
from webapp.plans.grids import PartGrid
from webapp.plans.points import on_kind, varying
from webapp.plans.preview import PREVIEW_SEED, Preview, StreamJob, jobs_of
from webapp.results.speeds import expected_writes, learned_preview
from webapp.screens import point_words
from webapp.screens.payloads import Payload

# Data that the pages of plans send to their scripts.


class PlanJob(Payload, frozen=True, kw_only=True):
    """The job of one trial; `prefill_text` is "" without a prefill, `steps_text` without steps before it."""

    trial: int  # number in the order
    title: str
    target: str
    command: str
    job_text: str
    prefill_text: str
    steps_text: str


class PlanJobs(Payload, frozen=True, kw_only=True):
    """The trials of the current page; `chosen` is the number of the trial whose job is shown first."""

    chosen: int
    jobs: tuple[PlanJob, ...]


class PlanProblem(Payload, frozen=True, kw_only=True):
    """`place` as in `plans.grids.FieldProblem`; "" is the whole plan."""

    place: str
    message: str


class PlanAnswer(Payload, frozen=True, kw_only=True):
    """The preview of the input: `html` replaces the displayed preview; "" keeps it, because the input is invalid."""

    problems: tuple[PlanProblem, ...]
    warnings: tuple[PlanProblem, ...]  # factors without effect
    html: str
    said: str  # for screen readers, one short line


TRIALS_PER_PAGE = 25
MAX_SEED = 2**53


@dataclass(frozen=True)
class PreviewRequest:
    """The parameters of a preview: seed of the order, page of trials (from 1; 0: that of `trial`), selected trial."""

    seed: int = PREVIEW_SEED
    page: int = 0
    trial: int = 0


def preview_request(data: Mapping[str, str], default_seed: int = PREVIEW_SEED) -> PreviewRequest:
    """From a query or a form, whose buttons send `do=page:2` or `do=trial:30`; invalid numbers become defaults."""
    step, _, place = str(data.get("do", "")).partition(":")

    def number(name: str, default: int, limit: int) -> int:
        text = place if step == name else str(data.get(name, "")).strip()
        return int(text) if text.isdecimal() and len(text) < 20 and int(text) < limit else default

    return PreviewRequest(number("seed", default_seed, MAX_SEED), number("page", 0, 10**6), number("trial", 0, 10**6))


@dataclass(frozen=True)
class ShownTrial:
    trial: PlannedTrial
    target: str  # host/target, or the common name of targets at once
    levels: list[str]


@dataclass(frozen=True)
class ShownPreview:
    preview: Preview
    factors: list[str]  # labels of the varying factors
    trials: list[ShownTrial]
    pages: Page[PlannedTrial]
    jobs: PlanJobs
    seed: int
    expected: list[tuple[Target, Expected]]  # expected bytes written, if known
    finds: Detectable | None  # None without trials

    @property
    def written(self) -> int | None:
        """Expected bytes written; None if nothing is known about one of the targets."""
        return written_in_total(self.preview.estimate, {str(target.pk): expected for target, expected in self.expected})

    @property
    def job(self) -> PlanJob | None:
        """The trial that is shown first."""
        return next((job for job in self.jobs.jobs if job.trial == self.jobs.chosen), None)

    @property
    def payload(self) -> object:
        return msgspec.to_builtins(self.jobs)


def shown_preview(
    document: PlanDocument, targets: Sequence[Target], wanted: PreviewRequest, grids: Sequence[PartGrid] | None = None
) -> ShownPreview:
    """Preview a plan; changes nothing. The hosts of `targets` must be fetched with them."""
    preview = learned_preview(document, targets, seed=wanted.seed, grids=grids)
    trials, by_id = preview.expansion.trials, {str(target.id): target for target in targets}
    chosen = wanted.trial if 0 < wanted.trial <= len(trials) else 1
    pages = Paginator(trials, TRIALS_PER_PAGE).get_page(wanted.page or (chosen - 1) // TRIALS_PER_PAGE + 1)
    on_page = list(pages.object_list)
    if on_page and not on_page[0].number <= chosen <= on_page[-1].number:
        chosen = on_page[0].number
    each_point = [trial for trial, _ in preview.expansion.distinct]
    names = varying([trial.point for trial in each_point])
    return ShownPreview(
        preview=preview,
        factors=[point_words.label(name) for name in names],
        trials=[ShownTrial(t, _place(t, by_id), point_words.levels(on_kind(t.point, t.kind), names)) for t in on_page],
        pages=pages,
        jobs=PlanJobs(chosen=chosen, jobs=tuple(_job(trial, by_id) for trial in on_page)),
        seed=wanted.seed,
        expected=expected_writes(preview.expansion, preview.estimate, targets),
        finds=detectable(each_point, document.repeats, targets) if each_point and not document.goal else None,
    )


def _place(trial: PlannedTrial, targets: Mapping[str, Target]) -> str:
    first, *further = (targets[id_] for id_ in trial.target_ids)
    return group_name(
        str(first), [target.slug if target.host_id == first.host_id else str(target) for target in further]
    )


def _job(trial: PlannedTrial, targets: Mapping[str, Target]) -> PlanJob:
    streams = jobs_of(trial, targets)
    return PlanJob(
        trial=trial.number,
        title=f"#{trial.number} {point_words.in_words(trial.point)}",
        target=_place(trial, targets) + (", all at once" if trial.further_ids else ""),
        command=" + ".join(dict.fromkeys(" ".join(stream.recipe.command) for stream in streams)),
        job_text=_together(streams, [stream.recipe.job_text for stream in streams]),
        prefill_text=_together(streams, [stream.prefill.job_text if stream.prefill else "" for stream in streams]),
        steps_text=_steps(trial, streams),
    )


def _steps(trial: PlannedTrial, streams: Sequence[StreamJob]) -> str:
    """The purge and the steps of each stream in their order, with the jobs of those that write."""
    purge = [f"# purge {trial.before.purge}\n"] if trial.before.purge else []
    texts = [
        "".join([*purge, *(f"# {words}\n{recipe.job_text if recipe else ''}" for words, recipe in stream.steps)])
        for stream in streams
    ]
    return _together(streams, texts)


def _together(streams: Sequence[StreamJob], texts: Sequence[str]) -> str:
    """The texts of all streams, each under the name of its stream; "" if all are empty."""
    if len(streams) == 1 or not any(texts):
        return "".join(texts)
    heads = (
        f"; stream {stream.name or f'{number} of {len(streams)}'}, on {stream.target}"
        for number, stream in enumerate(streams, start=1)
    )
    return "\n".join(f"{head}\n{text}" for head, text in zip(heads, texts, strict=True))
