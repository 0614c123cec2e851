"""The command line: `python -m grokbook`, also installed as `grokbook`.

Exit status: 0 done, 1 it went wrong on the way, 2 what was asked cannot be (one line says what is allowed),
130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's, read at its import: on busy cores two wait for each other

try:
    import numpy as np

    import grokbook
    from grokbook import register as criteria
    from grokbook import session, words
    from grokbook.book import build, parameters
    from grokbook.book.parameters import BadInput
    from grokbook.chapters import Entry, chapters
    from grokbook.chapters import experiments as entries
    from grokbook.curves import first_step
    from grokbook.settings import given_as
    from grokbook.train import planning, queue, records, runner, say, workers
    from grokbook.train import verify as check
    from grokbook.train.experiment import Experiment
    from grokbook.train.workers import TrainingFailed
except KeyboardInterrupt:  # within the second that they take
    print("grokbook: interrupted", file=sys.stderr)
    sys.exit(130)


def list_(arguments: argparse.Namespace) -> None:
    """every experiment, the state of its record, and what it is for"""
    rows, whole = [("experiment", "record", "scale", "cost", "what it is")], arguments.do is status
    for name, entry in experiments(arguments.experiment).items():
        try:
            found = runner.status(entry.make(), whole=whole)
            if found.state == "missing" and (smaller := stand_in(entry)) is not None:  # which a page shows instead
                instead = runner.status(smaller, whole=whole)
                found = found if instead.state == "missing" else instead
        except OSError as error:
            rows.append((name, "unreadable", "", "", f"{error.filename}: {error.strerror}"))
            continue
        again = f"grokbook train {name}{' --reduced' * (found.scale != 'full')} makes it anew"
        again += ", and git checkout brings back a committed one" * (found.state != "stale")
        why = found.why and f"{found.why}; {again}"
        rows.append((name, found.state, found.scale, found.cost, why or entry.about))
    show(rows)
    if "/" in (arguments.experiment or ""):
        print("parameters:", *(given_as(name, default) for name, (_, default) in entry.known.items()))


def status(arguments: argparse.Namespace) -> None:
    """every experiment and its record, read whole: present, stale, damaged or missing, and why"""
    list_(arguments)


def train(arguments: argparse.Namespace) -> None:
    """train an experiment, or all of a chapter whose records are missing, and store the record"""
    parameters.check_device(arguments.device, arguments.scheduler)
    missing, failed = [], []
    for experiment in wanted(arguments):
        if not arguments.fresh:
            found = runner.status(experiment, out=arguments.out)
            if found.state == "present":
                print(f"{experiment.name}: the record is there, {found.path}; to train it again: --fresh")
                continue
            if arguments.out and found.lost:
                raise BadInput(f"--out: {found.lost}; name another folder, or say --fresh")
            if found.state == "damaged":
                say(f"{found.why}; it is trained again")
        missing.append(experiment)
    for experiment in sorted(missing, key=planning.work) if len(missing) > 1 else missing:
        try:
            _train(experiment, arguments)
        except TrainingFailed as error:
            if len(missing) == 1:
                raise
            say(str(error))
            failed.append(experiment.name)
    if failed:
        raise TrainingFailed(f"not trained: {', '.join(failed)}; the others of {len(missing)} are")


def _train(experiment: Experiment, arguments: argparse.Namespace) -> None:
    """Train one experiment and say what came of it."""
    with contextlib.suppress(ValueError):  # what cannot be trained here the training says
        device = "" if arguments.scheduler else runner.plan(experiment, arguments.device)[0]
        if device and (minutes := queue.minutes(experiment, device)) > 10:
            one = "GPU" if device == "cuda" else "core"
            say(f"{experiment.name}: about {minutes:,.0f} minutes of one {one} at most")
    record = runner.train(
        experiment,
        device=arguments.device,
        out=arguments.out,
        workers=arguments.workers,
        block=arguments.block,
        scheduler=arguments.scheduler,
        anew=arguments.fresh,
    )
    new, took = record.sizes["run"] - record.attrs.get("taken", 0), record.attrs["wall_seconds"]
    print(f"{experiment.name}: {new} run{'s' * (new != 1)} trained; all of the record took {took:.0f} core seconds")
    watched = dict(experiment.watch.thresholds) if experiment.watch else {}
    late = f"not within {record.steps.values.max():g} steps"
    for split in ("train", "test"):
        curve = f"{split}_accuracy"
        level = watched.get(curve, 0.99)
        steps = record[f"reached_{curve}"] if curve in watched else first_step(record[curve], record.step, level)
        met = steps[np.isfinite(steps)]
        when = f"at step {np.median(met):.0f} (median; {met.min():.0f} to {met.max():.0f})" if len(met) else late
        print(f"  {100 * level:.0f} % of the {split} set: {len(met)} of {len(steps)} runs, {when}")
    made = records.stored_path(experiment, arguments.out) if arguments.out else records.cached_path(experiment)
    read = runner.status(experiment, whole=False)
    another = read.state == "present" and read.path and read.path.resolve() != made.resolve()
    beside = f"; pages go on reading {read.path}" * bool(another)
    print(f"The record: {made}{beside}")


def queue_(arguments: argparse.Namespace) -> None:
    """what is worth training next, priority 1 first, and for how long; --run trains it, in legs of any length"""
    parameters.check_device(arguments.device)
    if not arguments.run and (arguments.minutes or arguments.workers):
        raise BadInput("--minutes and --workers are for --run, which trains")
    with parameters.asked_of():
        found, device = queue.entries(), runner.choose_device(arguments.device)
    todo = queue.Queue(found, arguments.out or records.ROOT / "results", device)
    if arguments.run:
        os.nice(19)
        todo.run(arguments.minutes, arguments.workers)
    else:
        show(todo.rows())


def run(arguments: argparse.Namespace) -> None:
    """execute and render one chapter with other parameters"""
    given = parameters.parse_assignments(arguments.parameter)
    print(f"The page: {build.make_chapter(arguments.chapter, given, settings(arguments))}")


def book_(arguments: argparse.Namespace) -> None:
    """execute every chapter and render the book"""
    print(f"The book: {build.make_book(settings(arguments))}")


def figures(arguments: argparse.Namespace) -> None:
    """execute every chapter, or one, and write its plots to figures/<chapter>/"""
    build.make_figures(settings(arguments), arguments.chapter)


def register(arguments: argparse.Namespace) -> None:
    """write down the criteria of a chapter's claims that are new or changed"""
    from grokbook.page import standing  # which imports what draws

    made = chapters()[parameters.one_of("chapter", arguments.chapter, chapters())]
    with parameters.asked_of():
        entered = criteria.enter(made.name, made.claims, standing(made), arguments.why)
    told = f"{len(entered)} of {len(made.claims)} criteria are new or changed"
    print(f"{told}{': ' if entered else ''}{', '.join(entered)}")


def verify(arguments: argparse.Namespace) -> None:
    """train stored runs again and compare with the record"""
    parameters.check_device(arguments.device, arguments.scheduler)
    (experiment,) = wanted(arguments)
    found = runner.status(experiment, out=arguments.out)
    if found.state != "present":
        if given := " ".join(arguments.parameter):
            raise BadInput(f"there is no record of {experiment.name} with {given} to verify")
        why = f" ({found.why})" if found.why else ""
        smaller = stand_in(experiments(experiment.name)[experiment.name])
        there = smaller is not None and runner.status(smaller, whole=False).state == "present"
        what = "--reduced verifies the smaller one, which is there" if there else "only a present one can be verified"
        raise BadInput(f"the record of {experiment.name} is {found.state}{why}; {what}")
    rows = [("run", "condition", "seed", "stored: step of 99%", "trained again", "largest difference", "too far")]
    how = {name: getattr(arguments, name) for name in ("sample", "out", "device", "workers", "scheduler")}
    with parameters.asked_of(experiment.name):  # of this machine, which plans the stacks: a device, or memory
        checked = check.verify(experiment, **how)
    for one in checked.comparisons:
        gap = "none, to the last bit" if one.identical else f"{one.difference:.2g} in {one.where}"
        before, now = ("never" if np.isnan(step) else f"{step:g}" for step in (one.stored_step, one.retrained_step))
        rows.append((str(one.run), one.label, str(one.seed), before, now, gap, one.why or "-"))
    show(rows)
    print(f"{experiment.name} {checked.verdict}. The record: {found.path}")
    if not checked.passed:
        sys.exit(1)


def show(rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the columns as wide as what is in them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def experiments(prefix: str | None = None) -> dict[str, Entry]:
    """'chapter/experiment' -> entry; all, those of one chapter, or one."""
    if prefix is None:
        return entries()
    chapter = parameters.one_of("chapter", prefix.partition("/")[0], chapters(), entries())
    own = entries(chapter)
    return own if prefix == chapter else {prefix: own[parameters.one_of("experiment", prefix, own)]}


def wanted(arguments: argparse.Namespace) -> list[Experiment]:
    """The experiment that is asked for, with parameters as name=value, or all of a chapter; or their stand-ins."""
    name, given, reduced = arguments.experiment, arguments.parameter, arguments.reduced
    found = experiments(name)
    if name in chapters():
        if arguments.do is verify:
            raise BadInput(f'"{name}" is a chapter; name one of its experiments: {", ".join(found)}')
        if given:
            raise BadInput(f"{given[0]}: parameters are an experiment's; name one, as {name}/NAME")
        return [one for entry in found.values() if (one := stand_in(entry) if reduced else entry.make())]
    if reduced:
        if given:
            raise BadInput(f"--reduced {name} has settings of its own; leave out {given[0]}")
        if (smaller := stand_in(found[name])) is None:
            raise BadInput(f"nothing stands in for {name}; leave out --reduced")
        return [smaller]
    entry = found[name]
    values = parameters.convert(name, entry.known, parameters.parse_assignments(given))
    try:
        with parameters.asked_of(name):
            made = entry.make(**values)
    except (ArithmeticError, LookupError) as error:
        told = f"{', '.join(given)} ({type(error).__name__}: {error})"
        raise BadInput(f"{name}: nothing can be trained with {told}") from None
    for idle, value in values.items():
        with contextlib.suppress(ArithmeticError, LookupError, ValueError):  # what is valid together need not be alone
            others = {other: values[other] for other in values if other != idle}
            # Of all, also of what is no part of a recipe, as a folder.
            if value != entry.known[idle][1] and repr(entry.make(**others)) == repr(made):
                say(f"{idle} has no effect on {name}")
    return [made]


def stand_in(entry: Entry) -> Experiment | None:
    """The smaller experiment that a page shows where the full one has no record."""
    smaller = entry.stand_ins()
    present = (one for one in smaller if runner.status(one, whole=False).state == "present")
    return next(present, smaller[-1] if smaller else None)


def settings(arguments: argparse.Namespace) -> build.Settings:
    return build.Settings(scale=arguments.scale, fresh=arguments.fresh, device=arguments.device)


class Parser(argparse.ArgumentParser):
    """An argparse parser whose complaints are one line with the nearest known name."""

    def error(self, message: str) -> NoReturn:
        if match := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            known = [name.strip(" '") for name in match[2].split(",")]
            what = message.split(":")[0].removeprefix("argument ")
            message = f'no {what} "{match[1]}"{words.suggest(match[1], known)}; there is: {", ".join(known)}'
        one_line = message.replace("\n", "\\n")
        self.exit(2, f"{self.prog}: {one_line}\n")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As usual, but an unknown option is reported by the command that does not know it."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            known = [name for name in parsed.parser._option_string_actions if name.startswith("--")]
            told = f"{unknown[0]}{words.suggest(unknown[0], known)}; options: {', '.join(known)}"
            parsed.parser.error(f"unknown argument {told}")
        return parsed


def positive(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 10**6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1,000,000")
    return int(text)


def folder(text: str) -> Path:
    place = Path(text).expanduser()
    with contextlib.suppress(OSError, ValueError):  # a name too long, or with a zero in it
        if text and not place.is_file():
            return place
    raise argparse.ArgumentTypeError(f"{text[:80]!r} is no folder")


def options() -> dict[str, dict[str, Any]]:
    """Every argument that a command may take."""
    user = session.current()
    number: dict[str, Any] = {"type": positive, "metavar": "N"}
    flag: dict[str, Any] = {"action": "store_true"}
    into: dict[str, Any] = {"type": folder, "metavar": "DIR"}
    given: dict[str, Any] = {"nargs": "+", "action": "extend", "default": [], "metavar": "NAME=VALUE"}
    return {
        "chapter": {"metavar": "CHAPTER"},
        "experiment": {"metavar": "CHAPTER/EXPERIMENT", "help": "list, status and train take a whole CHAPTER, too"},
        "-p --parameter": {**given, "help": "of the chapter's page, or of the experiment; several may follow one -p"},
        "--scale": {
            "choices": build.SCALES,
            "default": "full",
            "help": "full (default): settings for which records are stored; quick: small ones, trained in minutes",
        },
        "--fresh": {**flag, "help": "ignore stored records and train again"},
        "--reduced": {**flag, "help": "the smaller one that stands in for it on a page"},
        "--device": {"default": user.device, "help": "auto (default: CUDA where there is one), cpu or cuda"},
        "--out": {
            **into,
            "help": "where records lie (default: the local cache, $GROKBOOK_CACHE; of queue: results/)",
        },
        "--workers": {**number, "help": "processes (default: one per core or per GPU)"},
        "--scheduler": {
            "metavar": "ADDRESS",
            "default": user.scheduler or None,
            "help": "a Dask scheduler, as in tls://host:8786, whose workers train instead",
        },
        "--block": {**number, "help": "members trained side by side in one process"},
        "--run": {**flag, "help": "train, the best value for the time first"},
        "--minutes": {**number, "help": "how long (default: to the end)"},
        "--sample": {**number, "help": "at least so many of its runs, spread over it, with those of their stacks"},
        "--why": {"default": "", "help": "why a criterion changes after its record exists"},
    }


def parser() -> Parser:
    """Commands with an example each; what they do is their function's docstring."""
    top = Parser(prog="grokbook", description="Train, draw, check and render the Grokking Book.", allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"grokbook {grokbook.__version__}")
    commands = top.add_subparsers(dest="command", metavar="command", required=True, title="commands")
    known = {name.split()[-1].strip("-"): (name.split(), told) for name, told in options().items()}
    for do, taken, example in (
        (list_, "experiment", "list gromov"),
        (
            train,
            "experiment parameter device out fresh reduced workers scheduler block",
            "train gromov/learning_curves --device cuda --workers 1",
        ),
        (queue_, "run minutes workers out device", "queue --run --minutes 9 --workers 1"),
        (run, "chapter parameter scale fresh device", "run gromov -p p=59 width=1024"),
        (book_, "scale fresh device", "book --scale quick"),
        (figures, "chapter scale fresh device", "figures gromov"),
        (status, "experiment", "status gromov"),
        (register, "chapter why", 'register gromov --why "the bound was in degrees, not radians"'),
        (verify, "experiment parameter reduced sample out device workers scheduler", "verify gu/base --sample 1"),
    ):
        summary = do.__doc__ or ""
        made = commands.add_parser(
            do.__name__.strip("_"),
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=f"example:\n  grokbook {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        made.set_defaults(do=do, parser=made)
        for name in taken.split():
            names, told = known[name]
            optional = do in (list_, figures, status) and not names[0].startswith("-")
            made.add_argument(*names, **(told | {"nargs": "?"} if optional else told))
    return top


def main(argv: list[str] | None = None) -> int:
    """Run one command; see the module's docstring for the exit status."""
    try:
        arguments = parser().parse_args(argv)
    except ValueError as error:  # of a variable
        say(str(error))
        return 2
    for one in workers.ends():
        signal.signal(one, signal.default_int_handler)
    try:
        arguments.do(arguments)
    except BadInput as error:
        say(str(error).replace("\n", "\\n"))
        return 2
    except KeyboardInterrupt:
        trains = arguments.do in (train, queue_, run, book_, figures)
        kept = "; the same command goes on with what was trained" if trains else "; nothing is kept"
        say("interrupted" + kept * (trains or arguments.do is verify))
        return 130
    except BrokenPipeError:
        sys.stderr.close()
    except shutil.Error as error:  # of a copied folder: source, place and why, of each file
        source, place, why = error.args[0][0]
        say(f"cannot copy {source} to {place}: " + re.sub(r"\[Errno \d+\] |: '.*", "", why))
    except OSError as error:
        if error.errno is None:
            raise
        what = f"cannot read or write {error.filename}" if error.filename else "the system refuses"
        say(f"{what}: {error.strerror}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("grokbook"):
            raise
        extra = "cluster" if error.name == "distributed" else "book"
        say(f"this command needs {error.name}; install it with: pip install -e '.[{extra}]'")
    except (build.BuildError, TrainingFailed, records.DamagedRecord) as error:
        print(f"grokbook: {error}" if "\n" not in str(error) else error, file=sys.stderr)
    except (MemoryError, RuntimeError) as error:  # PyTorch's is of the second kind
        if isinstance(error, RuntimeError) and "can't allocate memory" not in str(error):
            raise
        say(f"there is not enough memory for this ({str(error) or 'nothing is left'})".splitlines()[0])
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
