"""What to value, by what model, and how."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from databanzhaf import chance
from databanzhaf import until as conditions
from databanzhaf.applications import flagged
from databanzhaf.errors import InvalidInput, check_between, check_count, short
from databanzhaf.estimate import Estimate
from databanzhaf.evaluators import cluster
from databanzhaf.notions import Banzhaf, all_named, written
from databanzhaf.protocols import IntArray, Notion
from databanzhaf.until import Condition


@dataclass(frozen=True)
class Flag:
    """Who is a suspect: "fdr", "lowest" and "below" with a number, or "cluster"."""

    kind: str = "fdr"
    number: float | None = 0.05

    @classmethod
    def parse(cls, text: str) -> Flag:
        """fdr:0.05, lowest:0.1, below:0 or cluster."""
        kind, _, number = text.partition(":")
        ranges = {"fdr": (0.0, 1.0), "lowest": (0.0, 1.0), "below": (-math.inf, math.inf)}
        if text == "cluster":
            return cls(text, None)
        if kind not in ranges:
            raise InvalidInput(
                "`flag` must be fdr:0.05, lowest:0.1, below:0 or cluster",
                got=short(text),
                remedy="Try fdr:0.05.",
            )
        remedy = "Try fdr:0.05, lowest:0.1 or below:0."
        return cls(kind, check_between(f"flag {kind}", _number(number), *ranges[kind], remedy))

    @property
    def beyond_chance(self) -> bool:
        """Whether it asks for values below zero beyond chance."""
        return self.kind == "fdr"

    def suspects(self, estimate: Estimate) -> IntArray | None:
        """The players it flags, lowest value first; None where it needs standard errors and there
        are none.
        """
        if self.kind == "cluster":
            return flagged(estimate, "cluster")
        if self.beyond_chance and math.isnan(sum(estimate.p_values())):
            return None
        name = {"fdr": "fdr", "lowest": "fraction", "below": "threshold"}[self.kind]
        return flagged(estimate, **{name: self.number})  # type: ignore[arg-type]

    def __str__(self) -> str:
        return self.kind if self.number is None else f"{self.kind}:{written(self.number)}"


@dataclass(frozen=True)
class Until:
    """A condition, and the text that it was read from."""

    text: str
    condition: Condition

    @classmethod
    def parse(cls, text: str) -> Until:
        """stable[:SPEARMAN], precise:STD_ERROR, minutes:NUMBER; with "," whichever comes first."""
        condition: Condition | None = None
        for part in text.split(","):
            kind, _, number = part.strip().partition(":")
            amount = _number(number) if number else None
            if kind == "stable" and amount is not None and not 0 < amount < 1:
                raise InvalidInput(
                    "`until` takes a rank correlation between 0 and 1",
                    got=short(part.strip()),
                    remedy="Try stable:0.9.",
                )
            if kind == "stable":
                one: Condition = conditions.ranking_stable(0.9 if amount is None else amount)
            elif kind == "precise" and amount is not None:
                one = conditions.precise(amount)
            elif kind == "minutes" and amount is not None:
                one = conditions.deadline(60 * amount)
            else:
                raise InvalidInput(
                    "`until` must be stable, stable:0.95, precise:0.01 or minutes:10",
                    got=short(text),
                    remedy="Try stable.",
                )
            condition = one if condition is None else condition | one
        assert condition is not None  # split gives one part or more
        return cls(text, condition)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Settings:
    """What to value, by what model, and how. Only `data` and `target` have no default."""

    data: str
    target: str
    validation: str | None = None
    validation_fraction: float | None = None
    model: str = "forest"
    task: str = "auto"
    metric: str | None = None
    groups: str | None = None
    clusters: int | None = None
    open: tuple[str, ...] = ()
    id: str | None = None
    drop: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    encoding: str = "utf-8"
    separator: str | None = None
    decimal: str = "."
    notion: Notion = field(default_factory=Banzhaf)
    estimator: str = "auto"
    budget: int = 5000
    repeats: int | None = None
    until: Until | None = None
    flag: Flag = field(default_factory=Flag)
    keep: str = "auto"
    jobs: int = -1
    cluster: str | None = None
    timeout: float | None = None
    device: str = "auto"
    seed: int = 0

    @classmethod
    def parse(cls, texts: dict[str, Any]) -> Settings:
        """From words, as a shell or a run.json gives them."""
        parsed = dict(texts)
        for name, read in (("notion", all_named), ("until", Until.parse), ("flag", Flag.parse)):
            if parsed.get(name):
                parsed[name] = read(parsed[name])
            elif name in parsed and name != "until":
                read(parsed[name] or "")
        settings = cls(**{**parsed, "until": parsed.get("until") or None})
        settings.check()
        return settings

    def words(self) -> dict[str, Any]:
        """As words, for a run.json; `parse` reads them."""
        texts = {"notion": self.notion.name, "flag": str(self.flag)}
        return {**asdict(self), **texts, "until": self.until and str(self.until)}

    def check(self) -> None:
        """Refuse what no run could use."""
        choices = {
            "task": ("auto", "classification", "regression"),
            "decimal": (".", ","),
            "keep": ("auto", "predictions", "scores"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise InvalidInput(
                    f"`{name}` must be one of {' '.join(map(repr, allowed))}",
                    got=short(getattr(self, name)),
                    remedy=f"Try {allowed[0]!r}.",
                )
        if self.validation_fraction is not None:
            check_between("validation_fraction", self.validation_fraction, 0, 1, "Try 0.3.")
        check_count("budget", self.budget)
        if self.clusters is not None:
            check_count("clusters", self.clusters)
        if self.clusters is not None and self.groups is not None:
            raise InvalidInput(
                "rows are valued in groups or in clusters",
                got="both --groups and --clusters",
                remedy="Leave one out.",
            )
        if self.open and self.clusters is None:
            raise InvalidInput(
                "--open names clusters whose rows are valued one by one",
                got="no --clusters",
                remedy="Pass the number of clusters, too.",
            )
        chance.check_seed(self.seed)
        if self.repeats is not None:
            check_count("repeats", self.repeats)
        if self.jobs != -1:
            check_count("jobs", self.jobs)
        if self.cluster is not None:
            cluster(self.cluster)
        if self.timeout is not None:
            check_between("timeout", self.timeout, 0, math.inf, "Give seconds.")


def _number(text: str) -> float:
    """A number, or NaN, which every check refuses."""
    try:
        return float(text)
    except ValueError:
        return math.nan
