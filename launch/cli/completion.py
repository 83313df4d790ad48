"""`vantage completion SHELL`: what a shell needs to complete commands, flags and paths.

The parser makes the script; it holds all flags, so that pressing Tab never starts Vantage. Left to
itself it completes no argument that stands without a flag. Here those are nearly always paths of
runs, so the shell is told to complete files wherever the script has nothing to say.
"""

import contextlib
import io
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union

import tyro

from launch.errors import ExitCode

Shell = Literal["bash", "zsh", "fish"]
# Zsh counts words from 1, the Python in the script from 0; the marker is its "complete files".
_ZSH_CHANGES = (
    ('"$CURRENT"', '"$((CURRENT - 1))"'),
    (
        "    # Output one completion per line.\n",
        "    completions = completions or ['__TYRO_COMPLETE_FILES__']\n",
    ),
)
# Bash does so by the option `default`, where a function finds nothing; the script's finds "".
_BASH_FILES = """
_vantage() {
  _tyro_vantage "$@"
  if [[ ${#COMPREPLY[@]} -eq 1 && -z "${COMPREPLY[0]}" ]]; then COMPREPLY=(); fi
}
complete -o default -F _vantage vantage
"""
# Fish does so after a command, unless the word before is a flag that wants a value.
_FISH_FILES = """
complete --command vantage --force-files --condition \\
  'test (count (commandline -opc)) -ge 2; and not string match -q -- "-*" (commandline -opc)[-1]'
"""


def completion(shell: Shell, commands: Mapping[str, Any]) -> ExitCode:
    """Prints the script; `commands` are the flags of every command by its name."""
    print(completion_script(shell, commands))
    return ExitCode.DONE


def completion_script(shell: Shell, commands: Mapping[str, Any]) -> str:
    """The script for one shell."""
    choices = tuple(Annotated[own, tyro.conf.subcommand(name)] for name, own in commands.items())
    # A type that is only known as it runs.
    flags: Any = Union[choices]  # noqa: UP007
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        tyro.cli(
            flags,
            args=["--tyro-print-completion", shell],
            prog="vantage",
            config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
        )
    script = printed.getvalue()
    if shell == "zsh":
        for before, after in _ZSH_CHANGES:
            script = script.replace(before, after)
        return script
    return script + (_BASH_FILES if shell == "bash" else _FISH_FILES)
