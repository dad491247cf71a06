"""The runner: what is chosen, what is measured again, and what a wrong name is told."""

import json

import pytest

from benchmarks.suite import runner
from benchmarks.suite.experiment import Experiment, Run, UnknownError, abouts, find, grid
from benchmarks.suite.journal import Journal
from benchmarks.suite.tables import page

pytestmark = pytest.mark.slow

KEYS = grid(set=["usps", "letter"], seed=[0, 1])


class Toy:
    """An experiment of four keys that notes what it measures, and can be stopped before one."""

    def __init__(self, stop_before=None):
        self.measured = []
        self.stop_before = stop_before

    def measure(self, run, set, seed):
        if len(self.measured) == self.stop_before:
            raise KeyboardInterrupt
        self.measured.append((set, seed))
        return {"error": 0.25 + seed}

    def run(self, path, only=(), again=False):
        report = page("Toy", "{machine}", "set = set | error = error:.1f", lambda j: j.records)
        run = Run(Journal(path), path.parent, {})
        runner.measure_missing(Experiment(KEYS, self.measure, report), run, list(only), again)
        return self.measured


def journal_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_journal_has_a_line_a_key_after_its_machine(tmp_path):
    assert Toy().run(tmp_path / "toy.jsonl") == [
        ("usps", 0),
        ("usps", 1),
        ("letter", 0),
        ("letter", 1),
    ]
    machine, first, *others = journal_of(tmp_path / "toy.jsonl")
    assert machine.keys() == {"machine"}
    assert first == {"set": "usps", "seed": 0, "error": 0.25}
    assert len(others) == 3


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    path = tmp_path / "toy.jsonl"
    with pytest.raises(KeyboardInterrupt):
        Toy(stop_before=2).run(path)
    before = path.read_text()
    assert Toy().run(path) == [("letter", 0), ("letter", 1)]
    assert path.read_text().startswith(before)
    assert Toy().run(path) == []


def test_a_line_that_was_cut_off_is_measured_again(tmp_path):
    path = tmp_path / "toy.jsonl"
    Toy().run(path)
    whole = path.read_text()
    path.write_text(whole[:-9])
    assert Toy().run(path) == [("letter", 1)]
    assert path.read_text() == whole


def test_what_is_measured_again_counts(tmp_path):
    path = tmp_path / "toy.jsonl"
    Toy().run(path)
    assert Toy().run(path, [("set", "usps"), ("seed", "1")], again=True) == [("usps", 1)]
    journal = Journal(path)
    assert len(journal.records) == 5
    assert [r["set"] for r in journal.latest("set", "seed")] == ["usps", "usps", "letter", "letter"]


def test_a_failure_is_tried_again_but_not_what_is_too_slow(tmp_path):
    journal = Journal(tmp_path / "toy.jsonl")
    journal.add({"set": "usps", "seed": 0, "failure": "exit 1: no module"})
    journal.add({"set": "usps", "seed": 1, "failure": "not done after 60 s"})
    assert Toy().run(journal.path, [("set", "usps")]) == [("usps", 0)]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        (("set", "lettr"), "no set 'lettr'; did you mean letter"),
        (("sed", "0"), "no field 'sed'; did you mean seed"),
    ],
)
def test_a_wrong_choice_is_told_what_there_is(only, message):
    with pytest.raises(UnknownError, match=message):
        runner.chosen(KEYS, [only])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["falc", "--report"], "no experiment 'falc'; did you mean falk"),
        (["workers", "--with", "run=1"], "no setting 'run'; did you mean runs"),
        (["workers", "--quick"], "no setting 'quick'; did you mean"),
        (["workers", "--only", "runs"], "'runs' is not of the form NAME=VALUE"),
    ],
)
def test_a_wrong_name_ends_with_suggestions(arguments, message, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        runner.main([*arguments, "--results", str(tmp_path)])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_list_names_every_experiment(capsys):
    runner.main(["--list"])
    listed = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert listed == dict(abouts())
    assert {"covtype", "ten_million", "track"} <= listed.keys()


@pytest.mark.parametrize("name", [name for name, _ in abouts()])
def test_every_module_is_an_experiment(name):
    experiment = find(name)
    assert isinstance(experiment, Experiment)
