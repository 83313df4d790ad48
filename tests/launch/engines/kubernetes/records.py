"""A run in a cluster, as tests need it: always the same."""

import dataclasses

from launch.config import Config
from launch.engines.kubernetes.start import prepare
from launch.engines.options import HostsOptions, KubernetesOptions, SlurmOptions
from launch.engines.record import EngineRecord
from tests.launch.tiny_run import tiny_config


def make_run(
    hosts: HostsOptions | None = None, sizes: SlurmOptions | None = None, **options: object
) -> tuple[EngineRecord, Config]:
    """The record and the config of a run that `vantage train` would start."""
    hosts = hosts or HostsOptions(3, 4)
    kubernetes = KubernetesOptions(**{"image": "registry.example/vantage:1.0", **options})
    record = EngineRecord(
        "kubernetes", "c0ffee", hosts, sizes or SlurmOptions(), kubernetes=kubernetes
    )
    config = tiny_config()
    actor = dataclasses.replace(config.actor, actors=hosts.num_actors)
    return prepare(record, dataclasses.replace(config, actor=actor), None)
