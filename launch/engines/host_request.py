"""Which host `vantage host` is to be: what it was given, and what no host can be."""

import dataclasses

from launch.engines.options import ACTOR_GROUPS, LEARNER_GROUPS, HostRequest
from launch.engines.share import Share, read_bundle, read_files, wait_for_files
from launch.errors import InputError


def share_of(request: HostRequest) -> Share | None:
    """What the host was given beside, or instead of, a run directory."""
    if request.bundle is not None:
        if (request.run_dir, request.config, request.key) != (None, None, None):
            raise InputError("--bundle holds all; drop --run-dir, --config and --key")
        return read_bundle(request.bundle)
    if (request.config is None) != (request.key is None):
        raise InputError("--config and --key go together")
    if request.config is not None and request.key is not None:
        if request.come_back and set(request.groups) == set(ACTOR_GROUPS):
            return wait_for_files(request.config, request.key, request.index)
        return read_files(request.config, request.key)
    if request.run_dir is None:
        raise InputError("a host needs --run-dir, --bundle, or --config and --key")
    return None


def complete(request: HostRequest, share: Share | None) -> HostRequest:
    """The request with what a bundle says; refuses what no host can be."""
    if share is not None and share.index is not None:
        request = dataclasses.replace(request, groups=ACTOR_GROUPS, index=share.index)
    if set(request.groups) not in (set(LEARNER_GROUPS), set(ACTOR_GROUPS)):
        raise InputError(
            f"groups={' '.join(request.groups)}: a host runs either "
            f"'{' '.join(LEARNER_GROUPS)}' or '{' '.join(ACTOR_GROUPS)}'"
        )
    if request.index < 0:
        raise InputError(f"index={request.index} must not be negative")
    plays = set(request.groups) == set(ACTOR_GROUPS)
    if plays and share is not None and request.run_dir is not None:
        raise InputError("an actor host with --config and --key needs no --run-dir; drop it")
    if not plays and request.run_dir is None:
        raise InputError("the learner's host needs --run-dir: checkpoints must lie somewhere")
    return request
