"""What a chapter's notebook talks to: records and studies by name, figures to show, claims to judge.

A record is looked up or trained when a figure or a claim first asks for it. A training that would cost more than the
page's budget is not started: what needs it says so, with the command that would run it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from grokbook import plotting, register, session, words
from grokbook.claims import decided, smallest
from grokbook.firstform import claims as claims_module
from grokbook.firstform.claims import Markdown
from grokbook.fold import badge
from grokbook.recipes import describe, settings
from grokbook.sizes import fewer_seeds, networks, size_of
from grokbook.train import records, runner
from grokbook.train.experiment import Experiment
from grokbook.train.records import write_whole

Study = Callable[[], xr.Dataset | None]


class Page(Mapping[str, xr.Dataset]):
    """One chapter at one set of parameters; a mapping from names to records and studies, filled when asked.

    Records carry ``size`` among their attributes (full, fewer seeds or smaller), and studies that of their smallest.

    Args:
        chapter: its name.
        experiments: name -> experiment.
        studies: name -> function that computes a dataset without training, or None where it has no meaning.
        figures: id -> an object with ``draw`` (records -> figure) and ``needs`` (names).
        claims: all claims of the chapter.
        sentences: id -> an object with ``write`` (records -> text) and ``needs``.
        made_of: study -> the experiments that it reads.
        otherwise: name -> a smaller experiment that stands in where the full one has no record.
        cost: experiment -> PFLOP of its training.
        budget: the most PFLOP that a training may cost to be started from the page; at other settings than the
            paper's, what would cost more trains with as many of its seeds as it allows.
        committed: names of experiments whose records come with the book; where there is none, none was made yet,
            and the page says how to make it instead of training unasked.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
    """

    def __init__(
        self,
        chapter: str,
        experiments: Mapping[str, Experiment],
        studies: Mapping[str, Study],
        figures: Mapping[str, Any],
        claims: Sequence[claims_module.Claim],
        sentences: Mapping[str, Any],
        *,
        made_of: Mapping[str, Sequence[str]] | None = None,
        otherwise: Mapping[str, Experiment] | None = None,
        cost: Callable[[Experiment], float] = lambda experiment: 0.0,
        budget: float = np.inf,
        committed: Collection[str] = (),
        device: str | None = None,
    ) -> None:
        self.chapter, self.experiments, self.studies = chapter, experiments, studies
        self.drawn, self.all_claims = figures, {claim.id: claim for claim in claims}
        self.sentences, self.made_of = sentences, made_of or {}
        self.otherwise, self.cost, self.budget, self.device = otherwise or {}, cost, budget, device
        self.committed = committed
        self.entries = register.load(chapter)
        self.settled = set(experiments) <= set(committed)  # the settings for which the register counts verdicts
        self._found: dict[str, xr.Dataset | None] = {}
        self.verdicts: dict[str, claims_module.Verdict] = {}
        self.sources: dict[str, str] = {}
        self._described: set[str] = set()

    # ---------------------------------------------------------------------------------------------- records by name

    def __getitem__(self, name: str) -> xr.Dataset:
        if name not in self._found:
            if name in self.experiments:
                self._found[name] = self._obtain(name)
            elif name in self.studies:
                self._found[name] = self._study(name)
            else:
                raise KeyError(name)
        found = self._found[name]
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        try:
            return self[name] is not None  # type: ignore[index]
        except KeyError:
            return False

    def __iter__(self) -> Iterator[str]:
        return iter([*self.experiments, *self.studies])

    def __len__(self) -> int:
        return len(self.experiments) + len(self.studies)

    def _study(self, name: str) -> xr.Dataset | None:
        study, behind = self.studies[name](), [self[one] for one in self.made_of.get(name, ()) if one in self]
        return None if study is None else study.assign_attrs(size=smallest(one.attrs["size"] for one in behind))

    def _obtain(self, name: str) -> xr.Dataset | None:
        full, reduced = self.experiments[name], self.otherwise.get(name)
        candidates = [full] if reduced is None else [full, reduced]
        if not runner.fresh():
            found = [runner.status(one) for one in candidates]
            if any(place.record is not None for place in found):
                record = runner.obtain(full, otherwise=reduced, device=self.device)
                place = next(place for place in found if place.record is not None)
                committed = place.path in [records.stored_path(one) for one in candidates]
                self.sources[name] = "stored" if committed else "trained here"
                used = next(one for one in candidates if one.hash == record.attrs["hash"])
                return record.assign_attrs(size=size_of(full, used))
        within = [one for one in candidates if self.cost(one) <= self.budget]
        if not within and name not in self.committed:
            within = [one for one in fewer_seeds(full) if self.cost(one) <= self.budget]
        absent = all(runner.status(one).state == "missing" for one in candidates)
        if not within or (name in self.committed and absent and not runner.fresh()):
            self.sources[name] = "not trained"
            return None
        if runner.fresh() or runner.status(within[0]).record is None:
            _tell(f"{within[0].name}: training {len(within[0].runs)} networks, {within[0].member_steps:,} steps in all")
        self.sources[name] = "trained here"
        return runner.obtain(within[0], device=self.device).assign_attrs(size=size_of(full, within[0]))

    def command(self, name: str) -> str:
        """What to type to make a missing record; at other settings than the paper's, what to add to the parameters."""
        if name in self.experiments:
            cost = self.cost(self.experiments[name])
            if name not in self.committed and cost > self.budget:
                step = 10.0 ** (np.floor(np.log10(cost)) - 1)
                return f"budget={step * np.ceil(cost / step):g}"
            return f"python -m grokbook train {self.chapter}/{name}"
        return "; ".join(self.command(one) for one in self.made_of.get(name, ()) if one not in self)

    def _maker(self, name: str, record: xr.Dataset | None) -> str:
        """What makes the record that is shown."""
        if record is not None and name not in self.committed:
            return "this chapter with its parameters"
        reduced = record is not None and record.attrs["size"] != "full"
        return f"{self.command(name)} --reduced" if reduced else self.command(name)

    # ------------------------------------------------------------------------------------------------- what is shown

    def figure(self, id: str) -> Any:
        """The figure, saved where figures are collected; a placeholder where a record is missing."""
        drawn = self.drawn[id]
        missing = [name for name in drawn.needs if name not in self]
        if missing and not (drawn.some and len(missing) < len(drawn.needs)):
            trained = list(dict.fromkeys(filter(None, map(self.command, missing))))
            why = "Not trained here. To train it:\n" + "\n".join(trained) if trained else "Not defined for this p."
            return plotting.placeholder(why)
        figure = drawn.draw(self)
        plotting.save_if_asked(figure, self.chapter, id)
        return figure

    def say(self, id: str) -> Markdown | None:
        """A sentence with computed numbers; which command is missing where a record is, unless it was said before."""
        sentence = self.sentences[id]
        if missing := [name for name in sentence.needs if name not in self]:
            text = " ".join(self._sentence(name) for name in missing if name not in self._described)
        else:
            text = sentence.write(self)
        return Markdown(text) if text else None

    def ran(self, *names: str) -> Markdown:
        """A sentence a record on what was run, computed from the records."""
        known = [name for name in names if name in self._described]
        lines = [self._sentence(name) for name in names if name not in known]
        if known:
            lines.append(f"See above: {', '.join(f'`{name}`' for name in known)}.")
        return Markdown("\n".join(f"- {line}" if len(lines) > 1 else line for line in lines))

    def _sentence(self, name: str) -> str:
        self._described.add(name)
        if name not in self:
            return f"**{name}** has no record at these settings; to train it: `{self.command(name)}`."
        return f"**What was run** (`{name}`): {describe(self[name])}.{self._scale(name)}"

    def _scale(self, name: str) -> str:
        if (size := self[name].attrs["size"]) == "full":
            return ""
        *alike, has = describe(self[name]).split("; ")
        *settled, wanted = settings(self.experiments[name].runs).split("; ")
        full = f"has {wanted}" if alike == settled and has != wanted else f"is {'; '.join((*settled, wanted))}"
        return f' <span class="verdict size">{size}</span> The full setting {full}; `{self.command(name)}` runs it.'

    def claims(self, *ids: str, caption: str) -> claims_module.Table:
        """A table of claims with their verdicts; what was judged is kept for the summary."""
        chosen = [self.all_claims[id] for id in ids]
        for claim in chosen:
            self.verdicts[claim.id] = claim.judge(
                self, train=lambda name: self.command(name) or "not defined for this p"
            )
        return claims_module.table(chosen, self.verdicts, caption, self.entries if self.settled else None)

    def summary(self) -> Markdown:
        """How many claims came out how; kept beside the figures for the scorecard."""
        missing = [id for id in self.all_claims if id not in self.verdicts]
        if missing:
            raise LookupError(f"claims that no table shows: {', '.join(missing)}")
        self._keep_verdicts()
        said, told = self._said(), []
        for whose, called in (("paper", "claims of the paper"), ("ours", "checks of our own")):
            if outcomes := [one["outcome"] for one in said if one["whose"] == whose]:
                told.append(f"Of {len(outcomes)} {called}: {claims_module.tally(outcomes)}.")
        if changed := sum(one["changed"] for one in said):
            told.append(
                f"{changed} criteria were changed after a record existed; where no error in the earlier one forced "
                "that, the earlier one counts."
            )
        lines = [" ".join(told), ""]
        for name in ("partly", "not reproduced"):
            for one in said:
                if one["outcome"] == name:
                    mark = badge(name, one["size"], changed=one["changed"])
                    lines.append(f'- <a href="#claim-{one["id"]}">{one["figure"]}</a>: {one["statement"]} {mark}')
        if untrained := [name for name in self.experiments if name not in self]:
            lines += ["", f"Not trained yet: {', '.join(f'`{name}`' for name in untrained)}."]
        return Markdown("\n".join(lines))

    def counted(self, id: str, verdict: claims_module.Verdict) -> str:
        """The outcome that counts: the register's, where today's criterion gives what it gave when that was filled."""
        entry = self.entries.get(id) if self.settled else None
        if entry and verdict.outcome == decided(entry["versions"][-1]["verdict"], verdict.size):
            return register.counted(entry, verdict.outcome, verdict.size)
        return verdict.outcome

    def _said(self) -> list[dict[str, Any]]:
        """Every claim with the verdict that counts, and the one that today's criterion gives."""
        said = []
        for id, claim in self.all_claims.items():
            verdict, entry = self.verdicts[id], self.entries.get(id)
            said.append(
                {
                    "id": id,
                    "figure": claim.figure,
                    "statement": claim.statement,
                    "whose": entry["whose"] if entry else "paper",
                    "outcome": self.counted(id, verdict),
                    "today": verdict.outcome,
                    "size": verdict.size,
                    "changed": bool(self.settled and entry and register.changed(entry)),
                    "paper": claim.paper,
                    "ours": verdict.ours,
                }
            )
        return said

    def _keep_verdicts(self) -> None:
        if not session.current().figures:
            return
        held = {name: self.get(name, None) for name in self.experiments}
        trained = [
            {
                "name": name,
                "size": "missing" if record is None else record.attrs["size"],
                "networks": [] if record is None else sorted(networks([record])),
                "core_seconds": 0 if record is None else round(record.attrs["wall_seconds"]),
            }
            for name, record in held.items()
        ]
        text = json.dumps({"claims": self._said(), "records": trained}, indent=1, ensure_ascii=False) + "\n"
        write_whole(plotting.folder(self.chapter) / "claims.json", text.encode())

    def records_table(self) -> claims_module.Table:
        """Where every record of the page comes from, and how to make it. Settings stand at their figures."""
        rows = []
        for name in self.experiments:
            record = self.get(name, None)
            shown, command = _breakable(name), f"<code>{_breakable(self._maker(name, record))}</code>"
            if record is None:
                rows.append([shown, self.sources[name], "–", "–", "–", "–", "–", "–", command])
                continue
            rows.append(
                [
                    shown,
                    self.sources[name],
                    record.attrs["size"],
                    str(record.sizes["run"]),
                    str(len(np.unique(record.seed.values))),
                    record.attrs["machine"],
                    words.seconds(record.attrs["wall_seconds"]),
                    f"<code>{record.attrs['hash'][:8]}</code>",
                    command,
                ]
            )
        head = ("Experiment", "Source", "Size", "Runs", "Seeds", "Hardware", "Core time", "Hash", "Command")
        return claims_module.plain_table(head, rows, "The records this page stands on", cards=True)


def _breakable(words: str) -> str:
    """Where a narrow column may break a name, in HTML."""
    return words.replace("/", "/<wbr>").replace("_", "_<wbr>")


def _tell(line: str) -> None:
    """Say it where whoever builds the book can see it; a page shows nothing."""
    if path := session.current().progress:
        with open(path, "a", encoding="utf-8") as progress:
            progress.write(line + "\n")
