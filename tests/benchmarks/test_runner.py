"""The runner: what is chosen, what is measured again, and what a wrong name is told."""

import pytest

from benchmarks.suite import runner
from benchmarks.suite.experiment import Experiment, Run, abouts, find, grid
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


@pytest.mark.parametrize("name", [name for name, _ in abouts()])
def test_every_module_is_an_experiment(name):
    experiment = find(name)
    assert isinstance(experiment, Experiment)
