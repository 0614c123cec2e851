"""The command line: help that reads, refusals in one line, exit statuses."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from grokbook import __main__ as command_line
from grokbook.book import build as book
from grokbook.book.parameters import BadInput, check_device
from grokbook.models.mlp import TwoLayerMLP
from grokbook.optim import SGD
from grokbook.tasks import ModularTask
from grokbook.train import records, runner, workers
from grokbook.train.experiment import Experiment, Run, Schedule

COMMANDS = ("list", "train", "queue", "run", "book", "figures", "status", "verify")


def status(*arguments: str) -> int:
    """What the process would end with."""
    try:
        return command_line.main(list(arguments))
    except SystemExit as stopped:
        return stopped.code


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as stopped:
        command_line.main(["--help"])
    told = capsys.readouterr().out
    assert stopped.value.code == 0
    assert all(f"\n    {name} " in told for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command_says_what_it_does_and_gives_an_example_that_parses(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        command_line.main([name, "--help"])
    told = capsys.readouterr().out
    assert stopped.value.code == 0
    example = told.split("example:\n")[1].split()
    assert example[:2] == ["grokbook", name]
    assert command_line.parser().parse_args(example[1:]).command == name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["boook"], ['no command "boook"', 'did you mean "book"?', "verify"]),
        (["run", "gromow"], ['no chapter "gromow"', 'did you mean "gromov"?']),
        (["run", "gromov", "-p", "widht=10"], ['"widht"', 'did you mean "width"?', "p, width", "widht=10"]),
        (["run", "gromov", "-p", "p=many"], ["p = 'many'", "int"]),
        (["run", "gromov", "-p", "p"], ["name=value", '"p"']),
        (["book", "--scale", "quik"], ['"quik"', 'did you mean "quick"?', "full, quick"]),
        (["book", "--device", "cudda"], ['"cudda"', 'did you mean "cuda"?', "auto, cpu, cuda"]),
        (["run", "gromov", "-p", "device=gpu"], ["'gpu'", "auto, cpu, cuda"]),
        (["book", "--fersh"], ["--fersh", 'did you mean "--fresh"?']),
        (["train", "gromov/learning_curves", "--workers", "0"], ["--workers", "'0'", "from 1 to 1,000,000"]),
        (["train", "gromov/learning_curves", "-p", "device=cuda"], ['no parameter "device"']),
        (["queue", "--minutes", "5"], ["--minutes and --workers are for --run"]),
        (["train", "gromov/learning\ncurves"], ["learning\\ncurves", "learning_curves"]),
        (["bo\nok"], ["bo\\nok"]),
        (["verify", "liu/planes", "--reduced"], ["nothing stands in for liu/planes", "--reduced"]),
        (["train", "learning_curves"], ['no chapter "learning_curves" (did you mean "gromov/learning_curves"?)']),
        (["train", "gromov/nope"], ['no experiment "gromov/nope"; there is']),
        (["train", "gromov/learning_curves", "-p", "lr=nan"], ["lr = 'nan' is not of type float, or not finite"]),
        (["train", "gromov/learning_curves", "--out", __file__], ["--out: ", "is no folder"]),
        (["queue", "--out", ""], ["--out: '' is no folder"]),
        (["queue", "--out", "a" * 300], ["--out: 'aaa", "is no folder"]),
        (["train", "liu/dropout_times", "-p", "dropouts=100000000"], ["dropouts = 100000000: ", "from 2 to 99"]),
        (["train", "gromov/formation", "-p", "frames=1000000000"], ["frames = 1000000000: ", "from 1 to 1,000"]),
        (["train", "resnet/wide", "-p", "sizes=1000000000"], ["sizes = (1000000000,): ", "from 8 to 1,024"]),
        (["train", "resnet/fig7", "-p", "train_fraction=0.00001"], ["train_fraction = 1e-05: 0 of 14641 pictures"]),
        (["train", "resnet/fig7", "-p", "size=1000000000"], ["size = 1000000000: ", "from 8 to 1,024"]),
        (["train", "gu/base", "-p", "d_model=2147483648"], ["d_model = 2147483648: ", "up to 1000000"]),
        (["verify", "gromov/data_fraction"], ["gromov/data_fraction is missing; --reduced verifies the smaller one"]),
        (["verify", "gromov/adamw_curves", "-p", "p=59"], ["no record of gromov/adamw_curves with p=59"]),
        (["train", "liu/ring", "--reduced", "-p", "seeds=1"], ["liu/ring", "settings of its own", "seeds=1"]),
        (["train", "gromov", "-p", "p=5"], ["p=5: parameters are an experiment's; name one, as gromov/NAME"]),
        (["train", "gromov/learning_curves", "-p", "lr=0"], ["gromov/learning_curves", "lr", "allowed"]),
        (["train", "gromov/phase_controls", "-p", "width=0"], ["gromov/phase_controls", "width", "allowed"]),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_with_status_2(arguments, words, capsys):
    assert status(*arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    for word in words:
        assert word in told.err


def test_the_package_runs_as_a_command():
    command = [sys.executable, "-m", "grokbook", "boook"]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=book.ROOT)
    assert answer.returncode == 2 and len(answer.stderr.splitlines()) == 1


def test_an_interrupt_while_the_command_is_imported_is_one_line(tmp_path):
    (tmp_path / "numpy.py").write_text("raise KeyboardInterrupt")
    command, known = [sys.executable, "-m", "grokbook", "list"], {**os.environ, "PYTHONPATH": str(tmp_path)}
    answer = subprocess.run(command, capture_output=True, text=True, cwd=book.ROOT, env=known)
    assert answer.returncode == 130 and answer.stderr == "grokbook: interrupted\n"


def test_a_refusal_touches_no_file(small_book):
    root = small_book("print(p)")
    before = sorted(root.rglob("*"))
    with pytest.raises(BadInput):
        book.make_chapter("small", {"p": "x"}, book.Settings(root=root))
    assert sorted(root.rglob("*")) == before


def test_a_folder_that_cannot_be_copied_is_one_line(small_book, monkeypatch, capsys):
    root = small_book("print(p)")
    (root / "results").mkdir(exist_ok=True)
    for name in "ab":
        (root / "results" / name).symlink_to("nowhere")
    monkeypatch.setattr(command_line, "settings", lambda _: book.Settings(root=root))
    assert command_line.main(["book"]) == 1
    told = capsys.readouterr().err
    assert re.fullmatch(r"grokbook: cannot copy \S+/results/[ab] to \S+/[ab]: No such file or directory\n", told)


@pytest.mark.parametrize("value", ["{bad", "[]", '{"zz": 1}'])
def test_a_session_that_is_none_is_refused_in_one_line(value, monkeypatch, capsys):
    monkeypatch.setenv("GROKBOOK", value)
    assert status("list") == 2
    told = capsys.readouterr().err
    assert f"the variable GROKBOOK = {value!r} is not what a build hands on" in told and told.count("\n") == 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_full_or_read_only_disk_is_one_line(number, monkeypatch, capsys):
    def fail(settings: book.Settings) -> None:
        raise OSError(number, os.strerror(number), "some/file")

    monkeypatch.setattr(book, "make_book", fail)
    assert command_line.main(["book"]) == 1
    told = capsys.readouterr().err
    assert told == f"grokbook: cannot read or write some/file: {os.strerror(number)}\n"


def test_a_missing_package_of_the_book_is_one_line_with_what_to_install(monkeypatch, capsys):
    def fail(settings: book.Settings) -> None:
        raise ModuleNotFoundError("No module named 'papermill'", name="papermill")

    monkeypatch.setattr(book, "make_book", fail)
    assert command_line.main(["book"]) == 1
    assert (
        capsys.readouterr().err == "grokbook: this command needs papermill; install it with: pip install -e '.[book]'\n"
    )


def test_several_parameters_may_follow_one_flag():
    parsed = command_line.parser().parse_args(["run", "gromov", "-p", "p=5", "width=6", "-p", "seeds=1"])
    assert parsed.parameter == ["p=5", "width=6", "seeds=1"]


def test_the_list_says_what_each_experiment_is_for(capsys):
    assert command_line.main(["list", "gromov/adamw_curves"]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = next(line for line in lines if line.startswith("gromov/adamw_curves "))
    assert "present" in found and "core min" in found and found.endswith("Figs 3 and 6: modular addition under AdamW.")
    assert lines[-1].startswith("parameters: p=97 width=500") and " fractions=0.05,0.1," in lines[-1]


def test_a_parameter_that_changes_nothing_is_told(capsys):
    assert command_line.main(["train", "gromov/adamw_curves", "-p", "heads=4", "p=97"]) == 0
    assert capsys.readouterr().err == "grokbook: heads has no effect on gromov/adamw_curves\n"


@pytest.mark.parametrize(
    ("experiment", "settings", "level"),
    [
        ("gromov/learning_curves", ["p=5", "width=8", "seeds=1", "gd_steps=20"], 99),
        ("liu/phases_group", ["coarseness=12", "steps=20"], 90),
    ],
)
def test_a_training_tells_when_the_accuracies_that_it_watches_were_reached(
    experiment, settings, level, capsys, tmp_path
):
    given = [word for setting in settings for word in ("-p", setting)]
    assert command_line.main(["train", experiment, *given, "--workers", "1", "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert re.search(rf"  {level} % of the train set: 0 of \d+ runs, not within 20 steps", told)


@pytest.fixture
def small_chapter(monkeypatch, offered):
    """Three experiments in place of those of a chapter: the first the dearest, the last never finishes."""
    made = {
        f"gromov/{name}": lambda name=name, width=width: Experiment(
            f"gromov/{name}", (Run(ModularTask(5), TwoLayerMLP(5, width), SGD(1.0), 4, 0),), Schedule(log=4)
        )
        for name, width in (("wide", 16), ("narrow", 8), ("broken", 12))
    }
    offered(made)

    def train(experiment, **settings):
        if experiment.name == "gromov/broken":
            raise workers.TrainingFailed("gromov/broken: it broke")
        return honest(experiment, **settings)

    honest = runner.train
    monkeypatch.setattr(runner, "train", train)
    return made


def test_a_chapter_trains_what_has_no_record_the_cheapest_first_and_goes_on_after_a_failure(
    small_chapter, capsys, tmp_path
):
    command = ["train", "gromov", "--workers", "1", "--out", str(tmp_path)]
    assert command_line.main(command) == 1
    told = capsys.readouterr()
    assert told.out.index("gromov/narrow: 1 run trained") < told.out.index("gromov/wide: 1 run trained")
    assert "grokbook: gromov/broken: it broke" in told.err.splitlines()
    assert told.err.splitlines()[-1] == "grokbook: not trained: gromov/broken; the others of 3 are"

    del small_chapter["gromov/broken"]
    (tmp_path / "gromov" / "wide.nc").write_bytes(b"damaged")
    assert command_line.main(command) == 0
    told = capsys.readouterr()
    assert "wide: 1 run trained" in told.out and "narrow: the record is there" in told.out
    assert "wide.nc: not a readable NetCDF file" in told.err and "it is trained again" in told.err
    assert command_line.main(command) == 0
    assert capsys.readouterr().out.count("the record is there") == 2


def test_a_folder_that_holds_another_record_in_its_place_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GROKBOOK_CACHE", str(tmp_path / "cache"))
    command = ["train", "gromov/learning_curves", "--out", str(tmp_path), "--device", "cpu"]
    small = ["-p", "p=7", "width=8", "gd_steps=3", "seeds=1"]
    assert command_line.main([*command, *small]) == 0
    path = tmp_path / "gromov" / "learning_curves.nc"
    kept = path.read_bytes()
    capsys.readouterr()
    assert command_line.main([*command, *small]) == 0 and "the record is there" in capsys.readouterr().out
    assert command_line.main([*command, *small[:2], "width=9", *small[3:]]) == 2
    told = capsys.readouterr().err
    assert str(path) in told and "width" in told and "--fresh" in told and path.read_bytes() == kept
    assert command_line.main([*command, *small[:2], "width=9", *small[3:], "--fresh"]) == 0
    assert path.read_bytes() != kept


@pytest.mark.parametrize("command", ["list", "status"])
def test_what_is_no_file_in_a_records_place_is_a_row(command, small_chapter, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(records, "ROOT", tmp_path)
    (tmp_path / "results" / "gromov" / "narrow.nc").mkdir(parents=True)
    assert command_line.main([command, "gromov"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 4 and re.search(r"gromov/narrow +unreadable .*/narrow.nc: it is no regular file$", rows[2])


def test_a_scheduler_is_asked_for_gpus_and_not_this_machine(monkeypatch):
    check_device("cuda", "tcp://somewhere:8786")
    monkeypatch.setenv("GROKBOOK_SCHEDULER", "tcp://somewhere:8786")
    check_device("cuda")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["train", "liu/planes"], "goes on with what was trained"),
        (["verify", "liu/planes"], "nothing is kept"),
        (["status", "gromov"], "interrupted\n"),
    ],
)
def test_an_interrupted_command_says_what_is_kept(command, told, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "status", interrupted)
    assert command_line.main(command) == 130 and told in capsys.readouterr().err


def printed(root):
    """Every command that pages and README print, (place, words)."""
    pages = {one.name: json.loads(one.read_text())["cells"] for one in (root / "book").glob("*.ipynb")}
    texts = {name: "\n".join("".join(cell["source"]) for cell in cells) for name, cells in pages.items()}
    texts |= {one.name: one.read_text() for one in (*(root / "book").glob("*.md"), *root.glob("*.md"))}
    for name, text in texts.items():
        for line in re.findall(r"(?:^|`)(?:\S*/)?grokbook (\w[^`#\n]*)", text.replace("\\\n", ""), re.M):
            yield name, shlex.split(line)


def test_every_printed_command_is_one_that_the_parser_takes(root, capsys):
    commands = list(printed(root))
    assert len(commands) > 10
    for place, words in commands:
        try:
            command_line.parser().parse_args(words)
        except SystemExit:
            pytest.fail(f"{place}: grokbook {' '.join(words)}: {capsys.readouterr().err}")
