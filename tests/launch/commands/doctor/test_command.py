"""The doctor on this machine, and how it prints."""

from launch.commands.doctor.check import Check
from launch.commands.doctor.command import run_doctor
from launch.machine.child import run_child


def test_this_machine_is_ready_and_the_heavy_libraries_stay_out_of_our_process():
    code = (
        "import sys; from launch.commands.doctor.command import collect_checks as c; r = c(); "
        + (
            "print([(k.name, k.found) for k in r if k.ok is False], "
            "sorted({'launchpad', 'reverb', 'tensorflow', 'jax'} & set(sys.modules)))"
        )
    )
    result = run_child(code)
    assert result.ok, result.text
    assert result.text == "[] []"


def test_a_failed_check_prints_its_fix_and_gives_exit_code_1(capsys):
    checks = [Check("python", True, "3.11"), Check("cows", False, "none", "buy '.[cows]'")]
    assert run_doctor(checks) == 1
    output = capsys.readouterr().out
    assert "buy '.[cows]'" in output
    assert "needs fixing: cows" in output


def test_a_note_shows_its_advice_but_does_not_fail(capsys):
    assert run_doctor([Check("cores", None, "1", "2 or more")]) == 0
    output = capsys.readouterr().out
    assert "2 or more" in output
    assert "ready to train" in output
